package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// KeepFor is how long a checkpoint is kept after its last change, which is
// longer than an outage or a weekend. It holds personal data, and nothing else
// would remove it once the pipeline is gone.
const KeepFor = 7 * 24 * time.Hour

// Left describes, for people, the checkpoint of a run that ended early.
type Left struct {
	Header
	Windows int // completely read windows
	Rows    int64
	Bytes   int64

	folder string
}

// LeftIn returns the checkpoints of a state folder that the next run may take
// over, oldest first. It skips those that a run holds or whose header is not
// wanted. It changes nothing on disk.
func LeftIn(ctx context.Context, state string, wanted func(Header) bool) []Left {
	var left []Left
	for _, at := range folders(parentOf(state)) {
		if useless(at) || isHeld(at) {
			continue
		}
		if h, ok := headerIn(ctx, at); !ok || !wanted(h) {
			continue
		}
		c := &Checkpoint{Place: at, store: folder(at)}
		if l, err := c.Left(ctx); l != nil && err == nil {
			l.folder = at
			left = append(left, *l)
		}
	}
	slices.SortStableFunc(left, func(a, b Left) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return left
}

// headerIn reads the header of the checkpoint in a folder, false for none that can be read.
func headerIn(ctx context.Context, at string) (Header, bool) {
	data, err := folder(at).get(ctx, headerName, nil)
	if err != nil {
		return Header{}, false
	}
	h, err := decodeHeader(data)
	return h, err == nil
}

// Left describes what is in a checkpoint that no run holds. It returns nil if
// nothing is there or can be taken over. An error says why nothing can be taken
// over, or that the store failed. Left changes nothing.
func (c *Checkpoint) Left(ctx context.Context) (*Left, error) {
	found, err := c.Found(ctx)
	if found == nil || err != nil {
		return nil, err
	}
	l := &Left{Header: found.Header}
	for _, chain := range chains(found.all) {
		if chain.Ended() {
			l.Windows++
		}
		for _, p := range chain.Pieces {
			l.Rows += p.Stats.Rows
			for _, s := range p.streams {
				l.Bytes += s.Bytes
			}
		}
	}
	return l, nil
}

// Discard removes the checkpoint. If a run holds it by now, Discard returns false.
func (l Left) Discard(ctx context.Context) (discarded bool, err error) {
	c, err := lockFolder(l.folder)
	if c == nil || err != nil {
		return false, err
	}
	return true, c.Close(ctx, false)
}

// Sweep removes checkpoints that no run holds and no run may take over. These
// have no header, or were not changed for longer than KeepFor. It returns their
// number. With dryRun it only counts them.
func Sweep(state string, dryRun bool) (swept int) {
	for _, at := range folders(parentOf(state)) {
		if !useless(at) {
			continue
		}
		if dryRun {
			if !isHeld(at) {
				swept++
			}
			continue
		}
		c, err := lockFolder(at)
		if c == nil || err != nil {
			continue
		}
		keep := !useless(at) // another run wrote to it meanwhile, and ended
		if c.Close(context.Background(), keep) == nil && !keep {
			swept++
		}
	}
	if !dryRun {
		_ = os.Remove(parentOf(state)) // fails if it is not empty
	}
	return swept
}

func folders(parent string) (all []string) {
	entries, _ := os.ReadDir(parent) // empty if the folder does not exist
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, filepath.Join(parent, e.Name()))
		}
	}
	return all
}

// useless tells whether no run may take over the checkpoint in a folder. It has
// no header, or was not changed for longer than KeepFor. A time as far in the
// future comes from a wrong clock and counts as well.
func useless(at string) bool {
	header, err := os.Stat(filepath.Join(at, headerName))
	if err != nil {
		return true
	}
	changed := header.ModTime()
	if pieces, err := os.Stat(at); err == nil && pieces.ModTime().After(changed) {
		changed = pieces.ModTime() // each piece adds files to the folder
	}
	return time.Since(changed).Abs() > KeepFor
}
