package reconcile

import (
	"context"
	"log/slog"
	"slices"

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

// readOlder finds older parts that hold an id which this run read in another
// window, and reads them again. It repeats this until no such part is left.
func (c *Reconciler) readOlder(ctx context.Context) error {
	for {
		ids := c.freshIDs()
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

// freshIDs returns the ids that were read and not yet compared with older parts.
func (c *Reconciler) freshIDs() *roaring64.Bitmap {
	ids := roaring64.New()
	if c.Full {
		return ids // all parts are replaced
	}
	for _, w := range readWindows(c.Windows) {
		ids.Or(w.IDs)
	}
	ids.AndNot(c.compared)
	return ids
}

// readHits plans windows for the older parts in hits and reads them.
func (c *Reconciler) readHits(ctx context.Context, hits []load.Part) error {
	var todo []*reading.Window
	undated := false
	for _, p := range hits {
		if p.Undated {
			undated = true
			continue
		}
		r := c.olderRangeOf(p)
		if r == nil {
			continue // its range is read already
		}
		windows, err := c.planOlder(ctx, r)
		if err != nil {
			return err
		}
		todo = append(todo, windows...)
	}
	c.Work.Older += len(todo)
	if err := c.Reader.Read(ctx, todo); err != nil {
		return err
	}
	if undated && !c.wantsUndated() {
		return c.readKnownUndated(ctx)
	}
	return nil
}

// olderRangeOf returns the range of a part, widened to whole parts of every
// dataset. It returns nil if the range is read already.
func (c *Reconciler) olderRangeOf(p load.Part) *reading.Older {
	for _, r := range c.older {
		if hit, _, _ := load.Intersecting([]load.Part{p}, load.Span(r.Window.From, r.Window.To)); len(hit) > 0 {
			return nil
		}
	}
	r := &reading.Older{Window: interval.Widen(extract.Window{From: p.From.Time, To: p.To.Time}, c.Parts.Manifests(), c.Full)}
	c.older = append(c.older, r)
	return r
}

// planOlder divides an older range into windows and inserts them into the run's
// windows. It returns the new windows that may hold results.
func (c *Reconciler) planOlder(ctx context.Context, r *reading.Older) ([]*reading.Window, error) {
	at := slices.IndexFunc(c.Windows, func(w *reading.Window) bool {
		return w.Undated != nil || !w.Planned.Window.From.IsZero() && !w.Planned.Window.From.Before(r.Window.To)
	})
	if at < 0 {
		at = len(c.Windows)
	}
	plan, todo, err := c.plan(ctx, r.Window, r, at, at)
	if err != nil {
		return nil, err
	}
	r.Counts = append(r.Counts, plan.Total)
	c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "an older part is read again",
		slog.String("window", r.Window.String()), slog.Int64("results", plan.Total), slog.String("reason", "a result of it has another date now"))
	return todo, nil
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
			if r.Counts = append(r.Counts, counted); n == counted || round == rereads && reading.Plausible(r.Counts, n) {
				break
			}
			if round == rereads {
				return &VerifyError{Counted: counted, Extracted: n, Windows: spans(windows)}
			}
			if err := c.readChanged(ctx, windows); err != nil {
				return err
			}
		}
	}
	return nil
}
