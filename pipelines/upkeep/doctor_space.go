package upkeep

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/formetl/formetl/load"
)

// leastSpace is the free space, in bytes, below which a disk counts as nearly full, whatever the
// last run wrote.
const leastSpace = 100 << 20

// disk is a file system that a run writes to.
type disk struct {
	path string // first of the output and state folders on the disk, which names it in the check
	free int64  // bytes that this user may still write to the disk
	need int64  // bytes that the next run stages on the disk if no older result changed
}

// space adds a check for each local disk that compares its free space with what a run writes there.
func (e *examination) space(state *StateReport) {
	var ids []uint64
	var disks []disk
	look := func(folder string, need int64) {
		nearest := folder // if folder does not exist, the nearest folder above it that does
		if gone := absent(folder); len(gone) > 0 {
			nearest = filepath.Dir(gone[len(gone)-1])
		}
		id, free, err := spaceAt(nearest)
		if err != nil {
			e.add(Check{Name: "disk", Of: folder, State: NotChecked, Detail: "the free space is not known: " + err.Error()})
			return
		}
		i := slices.Index(ids, id)
		if i < 0 {
			i = len(disks)
			ids, disks = append(ids, id), append(disks, disk{path: folder, free: free})
		}
		disks[i].need += need
	}
	if isLocal(e.def.State) {
		look(e.def.State, 0)
	}
	for _, f := range state.Forms {
		for _, at := range f.Outputs {
			if isLocal(at.Path) {
				look(filepath.Dir(at.Path), staged(at.Manifest, f.Next))
			}
		}
	}
	for _, d := range disks {
		e.add(judgeSpace(d))
	}
}

// judgeSpace returns a check that compares the free space of a disk with what a run needs there.
func judgeSpace(d disk) Check {
	c := Check{Name: "disk", Of: d.path, State: OK, Detail: size(d.free) + " are free"}
	if d.need > 0 {
		c.Detail += fmt.Sprintf("; the next run writes about %s there, more if older results changed", size(d.need))
	}
	switch {
	case d.free < d.need || d.free == 0:
		c.State, c.Cure = Failed, "make space there, or write to another disk"
		c.Err = &load.Error{Kind: load.ErrFailed, Op: "write", Path: d.path, Remedy: c.Cure, Err: syscall.ENOSPC}
	case d.free < leastSpace || d.free/2 < d.need:
		c.State, c.Cure = Warning, "make space there, before the disk is full"
	}
	return c
}

// staged returns how many bytes the next run stages for an output, by m, the manifest of what lies
// there. next is where the range of an incremental run begins, from which on the run writes parts
// anew; nil means that it writes all.
func staged(m *load.Manifest, next *load.WallTime) (bytes int64) {
	if m == nil {
		return 0
	}
	for _, p := range m.Parts {
		if next == nil || p.Undated || p.To.IsZero() || p.To.After(next.Time) {
			bytes += p.Bytes
		}
	}
	return bytes
}

// size formats a number of bytes for people, such as "1.5 MB".
func size(n int64) string {
	switch {
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
