package checkpoint

import (
	"context"
	"errors"
	"fmt"
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

// Found reads what an earlier run left; nil where there is nothing. An error
// beside it says why it is of no use. An error without it is of the store, or of
// a run that was stopped, and says nothing about what lies there.
func (c *Checkpoint) Found(ctx context.Context) (*Inherited, error) { return c.found(ctx, true) }

// found is Found; with verify the rows of each piece are read and compared with
// their checksums.
func (c *Checkpoint) found(ctx context.Context, verify bool) (*Inherited, error) {
	c.begun = true // until it is known otherwise: what cannot be looked at stays
	names, err := c.store.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		c.begun = false
		return nil, nil
	}
	data, err := c.store.get(ctx, headerName, nil)
	if _, local := errors.AsType[*FolderError](err); err != nil && !local && !errors.Is(err, load.ErrNotExist) {
		return nil, err
	}
	if errors.Is(err, load.ErrNotExist) {
		err = errNoHeader
	}
	found := &Inherited{}
	if err == nil {
		found.Header, err = decodeHeader(data)
	}
	if err != nil {
		c.begun = false
		return found, err
	}
	pieces, faults := c.readPieces(ctx, names, verify)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	found.all, found.Faults = pieces, faults
	return found, nil
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

// errNoHeader is a checkpoint whose run ended before anything in it was of use
// to another one.
var errNoHeader = errors.New("it has no header")

// readers is how many records are read at once: a destination answers each only
// after a while.
const readers = 8

// readPieces reads the records that are whole and whose rows are.
func (c *Checkpoint) readPieces(ctx context.Context, names []string, verify bool) (pieces []Piece, faults []error) {
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		n, isRecord, ok := numberOf(name)
		if !ok {
			continue
		}
		if c.next = max(c.next, n+1); isRecord {
			numbers = append(numbers, n)
		}
	}
	read := make([]Piece, len(numbers))
	passing := make([]bool, len(numbers))
	failed := make([]error, len(numbers))
	var group errgroup.Group
	group.SetLimit(readers)
	for i, n := range numbers {
		group.Go(func() error {
			read[i], passing[i], failed[i] = c.readPiece(ctx, n, verify)
			return nil
		})
	}
	_ = group.Wait() // the failures are kept apart
	for i, p := range read {
		switch {
		case failed[i] != nil:
			faults = append(faults, fmt.Errorf("%s/%s: %w", c.Place, objectName(numbers[i], recordSuffix), failed[i]))
		case !passing[i]:
			pieces = append(pieces, p)
		}
	}
	return pieces, faults
}

// readPiece reads a record; with verify its rows are compared with their
// checksums. A passing piece was of use to its own run alone.
func (c *Checkpoint) readPiece(ctx context.Context, number int, verify bool) (p Piece, passing bool, err error) {
	r, err := c.record(ctx, number)
	if err != nil || r.Passing {
		return p, r.Passing, err
	}
	if p, err = r.piece(number); err == nil && verify && len(r.Streams) > 0 {
		_, err = c.rows(ctx, p, nil)
	}
	return p, false, err
}

// Usable chooses the pieces that a run may take over: not older than most, which
// may be 0 for no bound, and of windows that had ended when they were read. ended gives the wall-clock time
// up to which results were complete at an instant.
func (i *Inherited) Usable(now time.Time, most time.Duration, ended func(time.Time) time.Time) {
	fits := func(at time.Time, to time.Time) bool {
		return (most == 0 || now.Sub(at).Abs() <= most) && !to.IsZero() && !to.After(ended(at))
	}
	var usable []Piece
	for _, p := range i.all {
		if fits(p.ReadAt, p.Window.To) {
			usable = append(usable, p)
		}
	}
	i.Chains = chains(usable)
	var counts []Count
	for _, c := range i.Counts {
		if fits(c.At, c.Window.To.Time) {
			counts = append(counts, c)
		}
	}
	i.Counts = counts
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
