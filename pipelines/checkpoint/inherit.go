package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Inherited is what an earlier run left for the next one.
type Inherited struct {
	Header
	Chains []Chain // in order of time
	// Faults are why pieces were left out that cannot be read, for the log.
	Faults []error

	all []Piece // also those that are in no chain
}

// Found reads what an earlier run left but for the rows, which Verify reads; nil
// where there is nothing. An error beside it says why nothing can be taken over.
// An error without it comes from the store, or from a run that was stopped, and
// says nothing about what lies there.
func (c *Checkpoint) Found(ctx context.Context) (*Inherited, error) {
	c.begun.Store(true) // until it is known otherwise, so that what cannot be read is kept
	names, err := c.store.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		c.begun.Store(false)
		return nil, nil
	}
	found := &Inherited{}
	data, err := c.store.get(ctx, headerName, nil)
	_, local := errors.AsType[*FolderError](err)
	switch {
	case err == nil:
		found.Header, err = decodeHeader(data)
	case errors.Is(err, load.ErrNotExist):
		err = errNoHeader
	case !local:
		return nil, err
	}
	if err != nil {
		c.begun.Store(false)
		return found, err
	}
	for _, name := range names {
		n, isRecord, ok := numberOf(name)
		if !ok {
			continue
		}
		if c.next.Store(max(c.next.Load(), int64(n)+1)); isRecord {
			found.all = append(found.all, Piece{number: n})
		}
	}
	err = c.check(ctx, found, func(p *Piece) error {
		r, err := c.record(ctx, p.number)
		if err == nil {
			*p, err = r.piece(p.number)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Verify leaves out the pieces whose rows are not what was written, by their
// checksums.
func (c *Checkpoint) Verify(ctx context.Context, found *Inherited) error {
	return c.check(ctx, found, func(p *Piece) error {
		if len(p.streams) == 0 {
			return nil
		}
		_, err := c.rows(ctx, *p, nil)
		return err
	})
}

// readers is how many objects are read at once: a destination answers each only
// after a while.
const readers = 8

// check reads all pieces side by side. It turns those that fail into faults, and
// leaves out passing ones. Its error is that of a run that was stopped.
func (c *Checkpoint) check(ctx context.Context, found *Inherited, read func(*Piece) error) error {
	failed := make([]error, len(found.all))
	var group errgroup.Group
	group.SetLimit(readers)
	for i := range found.all {
		group.Go(func() error {
			failed[i] = read(&found.all[i])
			return nil
		})
	}
	_ = group.Wait() // the failures are kept apart
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	all := found.all
	found.all = nil
	for i, p := range all {
		if failed[i] != nil {
			found.Faults = append(found.Faults, fmt.Errorf("%s/%s: %w", c.Place, objectName(p.number, recordSuffix), failed[i]))
		} else if !p.Passing {
			found.all = append(found.all, p)
		}
	}
	return nil
}

// Newest is when the newest of what was read was asked for.
func (i *Inherited) Newest() time.Time {
	newest := i.OpenedAt
	for _, p := range i.all {
		if p.ReadAt.After(newest) {
			newest = p.ReadAt
		}
	}
	return newest
}

// Oldest is when the oldest piece was asked for that may be taken over, zero
// where there is none. A nil Inherited has none.
func (i *Inherited) Oldest() (oldest time.Time) {
	if i == nil {
		return oldest
	}
	for _, c := range i.Chains {
		for _, p := range c.Pieces {
			if oldest.IsZero() || p.ReadAt.Before(oldest) {
				oldest = p.ReadAt
			}
		}
	}
	return oldest
}

// errNoHeader is a checkpoint whose run ended before another run could take
// anything over.
var errNoHeader = errors.New("it has no header")

// Usable chooses the pieces that a run may take over. They are not older than
// most (0 is no bound), and their windows had ended when they were read. ended
// gives the wall-clock time up to which results were complete at an instant.
func (i *Inherited) Usable(now time.Time, most time.Duration, ended func(time.Time) time.Time) {
	fits := func(at time.Time, to time.Time) bool {
		return (most == 0 || now.Sub(at).Abs() <= most) && !to.IsZero() && !to.After(ended(at))
	}
	i.Chains = chains(slices.DeleteFunc(slices.Clone(i.all), func(p Piece) bool { return !fits(p.ReadAt, p.Window.To) }))
	i.Counts = slices.DeleteFunc(i.Counts, func(c Count) bool { return !fits(c.At, c.Window.To.Time) })
}

// Within gives the chains that lie in a window and do not overlap, in order of
// time. Where two overlap, the one that holds more results stays.
func (i *Inherited) Within(w extract.Window) []Chain {
	var in []Chain
	for _, c := range i.Chains {
		if !within(c.Window, w) {
			continue
		}
		if last := len(in) - 1; last >= 0 && c.Window.From.Before(in[last].Window.To) {
			if c.Results() > in[last].Results() {
				in[last] = c
			}
			continue
		}
		in = append(in, c)
	}
	return in
}

func within(in, of extract.Window) bool {
	from := of.From.IsZero() || !in.From.IsZero() && !in.From.Before(of.From)
	return from && (of.To.IsZero() || !in.To.IsZero() && !in.To.After(of.To))
}

// Keep removes all pieces but those of the chains that were taken over.
func (c *Checkpoint) Keep(ctx context.Context, taken []Chain) error {
	keep := map[int]bool{}
	for _, chain := range taken {
		for _, p := range chain.Pieces {
			keep[p.number] = true
		}
	}
	names, err := c.store.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n, _, ok := numberOf(name); ok && !keep[n] {
			if err := c.store.remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
