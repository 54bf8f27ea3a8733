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

// Inherited is what an earlier run left in a checkpoint for the next one.
type Inherited struct {
	Header
	Chains []Chain // in order of time
	// Faults say, for the log, why some pieces cannot be read and are left out.
	Faults []error

	all []Piece // all pieces, also those that are in no chain
}

// Found reads what an earlier run left in the checkpoint, except the rows, which Verify reads.
// It returns nil if the checkpoint is empty. An error with a result says why nothing can
// be taken over. An error without a result means that the store failed or the
// run was stopped.
func (c *Checkpoint) Found(ctx context.Context) (*Inherited, error) {
	c.begun.Store(true) // before reading, so that Close keeps pieces that cannot be read
	names, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		c.begun.Store(false)
		return nil, nil
	}
	found := &Inherited{}
	found.Header, err = c.header(ctx)
	if errors.Is(err, load.ErrNotExist) {
		err = ErrNoHeader
	} else if _, unreadable := errors.AsType[*StateError](err); unreadable {
		return nil, err // a header may be there, but the state does not answer
	}
	if err != nil {
		c.begun.Store(false)
		return found, err
	}
	for _, name := range names {
		p, isRecord, ok := pieceOf(name)
		if !ok {
			continue
		}
		c.next.Store(max(c.next.Load(), int64(p.number)+1))
		if isRecord {
			found.all = append(found.all, p)
		}
	}
	err = c.check(ctx, found, func(p *Piece) error {
		r, err := c.record(ctx, *p)
		if err == nil && !slices.Contains(found.Runs, r.Run) {
			err = fmt.Errorf("run %s still wrote it when another run had already gone on in its place", r.Run)
		}
		if err == nil {
			*p, err = r.piece(*p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Verify reads the rows of all pieces. It leaves out the pieces whose rows do
// not match their checksums.
func (c *Checkpoint) Verify(ctx context.Context, found *Inherited) error {
	return c.check(ctx, found, func(p *Piece) error {
		if len(p.streams) == 0 {
			return nil
		}
		buffer := c.buffer()
		defer c.buffers.Put(buffer)
		return c.rows(ctx, *p, buffer)
	})
}

// readers is how many objects are read at once, because a destination takes a
// while to answer each request.
const readers = 8

// check calls readPiece for all pieces, several at a time. It drops pieces for which readPiece
// fails, noting why in Faults, and those that are Passing. It returns an error only if the run was
// stopped, or if a bucket does not answer, because then the pieces may be intact.
func (c *Checkpoint) check(ctx context.Context, found *Inherited, readPiece func(*Piece) error) error {
	failed := make([]error, len(found.all))
	var group errgroup.Group
	group.SetLimit(readers)
	for i := range found.all {
		group.Go(func() error {
			failed[i] = readPiece(&found.all[i])
			return nil
		})
	}
	_ = group.Wait() // failed holds the errors
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	all := found.all
	found.all = nil
	for i, p := range all {
		if _, away := errors.AsType[*StateError](failed[i]); away && c.state.Remote() {
			return failed[i]
		}
		if failed[i] != nil {
			found.Faults = append(found.Faults, fmt.Errorf("%s/%s: %w", c.Place, p.object(recordSuffix), failed[i]))
		} else if !p.Passing {
			found.all = append(found.all, p)
		}
	}
	return nil
}

// Newest returns when the newest piece was requested, or OpenedAt if that is later.
func (i *Inherited) Newest() time.Time {
	newest := i.OpenedAt
	for _, p := range i.all {
		if p.ReadAt.After(newest) {
			newest = p.ReadAt
		}
	}
	return newest
}

// Oldest returns when the oldest piece in Chains was requested. It is zero if Chains has no
// piece or if i is nil.
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

// ErrNoHeader means that the earlier run ended before it wrote the checkpoint's header, so no
// other run can take anything over.
var ErrNoHeader = errors.New("it has no header")

// Unfit returns an error that says why a run with the header next takes nothing over from the
// earlier run, and nil if it may.
func (i *Inherited) Unfit(next Header) error {
	switch {
	case i.Fingerprint != next.Fingerprint:
		return errors.New("the definition has changed since that run")
	case next.OpenedAt.Sub(i.Newest()).Abs() > KeepFor:
		return errors.New("it is older than 7 days")
	case next.Full && !i.Full:
		return errors.New("a run with --full reads everything again")
	case i.Full && !next.Full && slices.ContainsFunc(next.Bases, func(b Base) bool { return b.Version != load.NoVersion && b.RunID != i.RunID }):
		return errors.New("that run had --full, and this one has not; if everything is still to be replaced, run with --full again")
	}
	for _, base := range next.Bases {
		if base.RunID != "" && base.RunID == i.RunID {
			continue // the earlier run itself committed this output, but not all outputs
		}
		at := slices.IndexFunc(i.Bases, func(b Base) bool { return b.Path == base.Path })
		if at < 0 && base.Version != load.NoVersion || at >= 0 && base.Version != i.Bases[at].Version {
			return fmt.Errorf("another run has written %s since that run", base.Path)
		}
	}
	_, err := DecodeColumns(i.Inferred)
	return err
}

// Usable fills Chains with the pieces that a run may take over, and drops counts that it may
// not. The pieces are at most `most` old (0 is no limit), and their windows had ended when
// they were read. ended returns the wall-clock time up to which results were complete at an
// instant.
func (i *Inherited) Usable(now time.Time, most time.Duration, ended func(time.Time) time.Time) {
	recent := func(at time.Time) bool { return most == 0 || now.Sub(at).Abs() <= most }
	fits := func(at time.Time, to time.Time) bool {
		return recent(at) && !to.IsZero() && !to.After(ended(at))
	}
	i.Chains = chains(slices.DeleteFunc(slices.Clone(i.all), func(p Piece) bool {
		// A result that comes later has a higher id, or counts show it.
		dateless := p.Window == extract.Window{}
		return !fits(p.ReadAt, p.Window.To) && (!dateless || !recent(p.ReadAt))
	}))
	i.Counts = slices.DeleteFunc(i.Counts, func(c Count) bool { return !fits(c.At, c.Window.To.Time) })
}

// Within returns the chains that lie in a window, in order of time. If two chains
// overlap, it keeps the one with more results.
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

// Keep removes all pieces from the checkpoint that are not in the chains taken over by the run.
func (c *Checkpoint) Keep(ctx context.Context, taken []Chain) error {
	keep := map[string]bool{}
	for _, chain := range taken {
		for _, p := range chain.Pieces {
			keep[p.object(recordSuffix)], keep[p.object(rowsSuffix)] = true, true
		}
	}
	names, err := c.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, _, ok := pieceOf(name); ok && !keep[name] {
			if err := c.remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
