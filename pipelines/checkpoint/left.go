package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// KeepFor is how long a checkpoint is kept after its last change: longer than an
// outage or a weekend. It is removed then, because it holds personal data, which
// would stay for ever once the pipeline is gone.
const KeepFor = 7 * 24 * time.Hour

// Left describes the checkpoint of a run that ended early, for people.
type Left struct {
	Header
	Windows int // that were read whole
	Rows    int64
	Bytes   int64

	folder string
}

// LeftIn gives the checkpoints of a state folder that the next run may take
// over, oldest first. Their header is wanted, and no run holds them. It changes
// nothing.
func LeftIn(ctx context.Context, state string, wanted func(Header) bool) []Left {
	var left []Left
	for _, at := range folders(parentOf(state)) {
		if useless(at) || isHeld(at) {
			continue
		}
		c := &Checkpoint{Place: at, store: folder(at)}
		data, err := c.store.get(ctx, headerName, nil)
		if err != nil {
			continue
		}
		if h, err := decodeHeader(data); err != nil || !wanted(h) {
			continue
		}
		if l, err := c.Left(ctx); l != nil && err == nil {
			l.folder = at
			left = append(left, *l)
		}
	}
	slices.SortStableFunc(left, func(a, b Left) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return left
}

// Left describes what lies in a checkpoint that no run holds, nil where there is
// nothing. An error beside nil says why nothing can be taken over, or that the
// store failed. It changes nothing.
func (c *Checkpoint) Left(ctx context.Context) (*Left, error) {
	found, err := c.Found(ctx)
	if found == nil || err != nil {
		return nil, err
	}
	l := &Left{Header: found.Header}
	for _, chain := range chains(found.all) {
		if chain.Complete() {
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

// Discard removes the checkpoint, unless a run has taken it up meanwhile.
func (l Left) Discard(ctx context.Context) (discarded bool, err error) {
	c, err := lockFolder(l.folder)
	if c == nil || err != nil {
		return false, err
	}
	return true, c.Close(ctx, false)
}

// Sweep removes the checkpoints of dead runs that no run may take over: those
// without a header, or unchanged for longer than KeepFor. It gives how many; with
// dryRun it only looks.
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
		keep := !useless(at) // a run has written to it meanwhile, and ended
		if c.Close(context.Background(), keep) == nil && !keep {
			swept++
		}
	}
	if !dryRun {
		_ = os.Remove(parentOf(state)) // kept where it holds anything
	}
	return swept
}

func folders(parent string) (all []string) {
	entries, _ := os.ReadDir(parent) // none where there is no such folder
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, filepath.Join(parent, e.Name()))
		}
	}
	return all
}

// useless tells whether no run may take a checkpoint over: it has no header, or
// was not changed for longer than KeepFor. A time as far in the future was set by a
// wrong clock.
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

// spoolName is the folder below which versions before 2 of this program kept what
// they had read, each run in a folder that it locked.
const spoolName = "spool"

// DiscardSpools removes what runs of an older version had read and left in a
// state folder, and gives how many runs it was. No run resumes from it, and it
// holds personal data. What a live run of that version holds stays; with dryRun
// everything does.
func DiscardSpools(state string, dryRun bool) (discarded int) {
	parent := filepath.Join(state, spoolName)
	for _, at := range folders(parent) {
		if !isHeld(at) && (dryRun || os.RemoveAll(at) == nil) {
			discarded++
		}
	}
	if !dryRun {
		_ = os.Remove(parent) // kept where it holds anything
	}
	return discarded
}
