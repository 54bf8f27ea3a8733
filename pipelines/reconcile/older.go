package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
)

// Ids never change, but dates may. A result that was begun a year ago and is
// finished today moves from an old part to one that this run writes. Every part
// keeps the set of its ids. A part is stale if it holds an id that this run
// read in another window. The run reads it again and replaces it in the same
// commit. So each id is in a dataset only once.

// settleStale finds older parts that hold an id which this run read in another
// window, and reads them again. It repeats this until no such part is left.
func (c *Reconciler) settleStale(ctx context.Context) error {
	for {
		ids := c.uncompared()
		if ids.IsEmpty() {
			return nil
		}
		hits, err := c.Parts.Holding(ctx, ids, c.Replaced())
		if err != nil {
			return err
		}
		c.compared.Or(ids)
		if err := c.readHits(ctx, hits); err != nil {
			return err
		}
		if err := c.settleDuplicates(ctx); err != nil {
			return err
		}
	}
}

// uncompared returns the ids that were read and not yet compared with older parts.
func (c *Reconciler) uncompared() *roaring64.Bitmap {
	if c.Full {
		return roaring64.New() // all parts are replaced
	}
	ids := c.readIDs()
	ids.AndNot(&c.compared)
	return ids
}

// readHits reads the older parts in hits again.
func (c *Reconciler) readHits(ctx context.Context, hits []Held) error {
	if err := c.readOlder(ctx, spansOf(hits), "a result of it has another date now"); err != nil {
		return err
	}
	return c.readUndatedOf(ctx, hits)
}

// mostCells is how many partitions a span may have that is read without a count.
const mostCells = 8

// planOlder divides a span outside the run's range into windows and inserts them
// into the run's windows. It returns the new windows that may hold results. A run
// that continues the datasets knows about how many results there are. So it asks
// for no count if there are few.
func (c *Reconciler) planOlder(ctx context.Context, w extract.Window, why string) ([]*reading.Window, error) {
	r := &reading.Older{Window: w}
	c.older = append(c.older, r)
	at := slices.IndexFunc(c.Windows, func(is *reading.Window) bool {
		return is.Undated != nil || !is.Planned.Window.From.IsZero() && !is.Planned.Window.From.Before(w.To)
	})
	if at < 0 {
		at = len(c.Windows)
	}
	count, cuts, held := c.Reader.Counter(), []time.Time(nil), interval.ResultsIn(w, manifestsOf(c.Parts))
	if c.isSmall(w, held) {
		count, cuts = nil, cutsOf(w, held)
	}
	plan, todo, err := c.plan(ctx, w, r, at, at, count, cuts...)
	if err != nil {
		return nil, err
	}
	r.Counts = append(r.Counts, plan.Total)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "an older part is read again",
		slog.String("window", w.String()), slog.Int64("results", held), slog.String("reason", why))
	return todo, nil
}

// cutsOf returns the times at which a window of so many results is cut, so that each
// piece holds about as many as reading.StaleTarget. They are whole days or hours.
func cutsOf(w extract.Window, results int64) (cuts []time.Time) {
	pieces := results / reading.StaleTarget
	if w.From.IsZero() || pieces < 2 {
		return nil
	}
	length := w.To.Sub(w.From) / time.Duration(pieces)
	unit := 24 * time.Hour
	if length < unit {
		unit = time.Hour
	}
	length = max(unit, length.Round(unit))
	for at := w.From.Truncate(unit).Add(length); at.Before(w.To); at = at.Add(length) {
		cuts = append(cuts, at)
	}
	return cuts
}

// isSmall tells whether a window of whole parts needs no count to be divided,
// because the datasets hold few results of it.
func (c *Reconciler) isSmall(w extract.Window, held int64) bool {
	if c.Changes == nil || !c.Changes.Continues || held > extract.DefaultTarget {
		return false
	}
	unit := c.Reader.Def.FinestUnit()
	if w.From.IsZero() { // it may be undivided where it is one part of each dataset
		return !slices.ContainsFunc(manifestsOf(c.Parts), func(m *load.Manifest) bool {
			return slices.ContainsFunc(m.Parts, func(p load.Part) bool {
				return !p.Undated && windowOf(p).Overlaps(w) && windowOf(p) != w
			})
		})
	}
	return unit.Spans(w.From, w.To) <= mostCells
}

// windowsOf returns those of the windows that belong to an older range.
func windowsOf(windows []*reading.Window, r *reading.Older) []*reading.Window {
	return slices.DeleteFunc(slices.Clone(windows), func(w *reading.Window) bool { return w.Older != r })
}

// verifyOlder compares what was read of older ranges with their counts. The
// first count is that of the plan. If it does not agree, the range is counted
// again, and read again if it still does not agree.
func (c *Reconciler) verifyOlder(ctx context.Context) error {
	for _, r := range c.older {
		for round := 0; ; round++ {
			windows := windowsOf(c.Windows, r)
			n := reading.Results(windows)
			if n == r.Counts[len(r.Counts)-1] {
				break
			}
			counted, err := c.Reader.Counter()(ctx, r.Window)
			if err != nil {
				return err
			}
			if n != counted {
				overlap, err := c.Reader.Overlap(ctx, r.Window.From)
				if err != nil {
					return err
				}
				counted -= overlap
			}
			if r.Counts = append(r.Counts, counted); n == counted || round >= reading.Rereads && reading.Plausible(r.Counts[len(r.Counts)-2:], n) {
				break
			}
			if r.Still.Disagrees(counted, n) {
				return &VerifyError{Counted: counted, Extracted: n, Windows: spans(windows), Untold: !c.Reader.CountsAgreed()}
			}
			if err := c.readChanged(ctx, windows); err != nil {
				return err
			}
		}
	}
	return nil
}
