package reconcile

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/reading"
)

const (
	// rereads is how often a window is read again before the run gives up.
	rereads = 3
	// mostRounds limits how often duplicates are looked for. A form that
	// changes with every request has new ones each time.
	mostRounds = 20
)

// settleDuplicates reads windows again until no id is in two windows. A result
// that is finished during the run moves to a later window. Then the window that
// was read first is stale.
func (c *Reconciler) settleDuplicates(ctx context.Context) error {
	var history []*roaring64.Bitmap // [i]: ids that were in two windows in each of the last i+1 rounds
	for round := 0; ; round++ {
		stale, twice := staleWindows(c.Windows)
		if len(stale) == 0 {
			return nil
		}
		for i := range history {
			history[i].And(twice)
		}
		history = append([]*roaring64.Bitmap{twice}, history[:min(len(history), rereads)]...)
		if oldest := history[len(history)-1]; len(history) > rereads && !oldest.IsEmpty() {
			return duplicateError(c.Windows, oldest.Minimum())
		}
		if round == mostRounds {
			return duplicateError(c.Windows, twice.Minimum())
		}
		if round > 0 && c.Reader.CoarseBounds() {
			if yielding := yieldLater(c.Windows, history[1]); len(yielding) > 0 {
				stale = yielding
			}
		}
		forget := func(ctx context.Context, w *reading.Window) error { return c.Reader.ForgetAround(ctx, w, twice) }
		if err := c.readAgain(ctx, stale, "a result is in two windows", forget); err != nil {
			return err
		}
	}
}

// staleWindows returns the windows that hold an id which a later reading found
// in another window. twice are these ids.
func staleWindows(windows []*reading.Window) (stale []*reading.Window, twice *roaring64.Bitmap) {
	read := readWindows(windows)
	slices.SortFunc(read, func(a, b *reading.Window) int { return cmp.Compare(b.Number, a.Number) })
	seen, twice := roaring64.New(), roaring64.New()
	for _, w := range read {
		if seen.Intersects(w.IDs) {
			stale = append(stale, w)
			twice.Or(roaring64.And(seen, w.IDs))
		}
		seen.Or(w.IDs)
	}
	return stale, twice
}

// yieldLater looks for ids that two adjacent windows hold though both were read again. The
// service's bounds are coarser than its dates then, and the later window holds the result.
// yieldLater returns the earlier windows, which leave these ids out from now on.
func yieldLater(windows []*reading.Window, twice *roaring64.Bitmap) (yielding []*reading.Window) {
	read := readWindows(windows)
	for _, w := range read {
		for _, next := range read {
			if w.Undated != nil || next.Undated != nil || w.Planned.Window.To.IsZero() || !next.Planned.Window.From.Equal(w.Planned.Window.To) {
				continue
			}
			both := roaring64.And(w.IDs, next.IDs)
			if both.And(twice); both.IsEmpty() {
				continue
			}
			if w.Later == nil {
				w.Later = roaring64.New()
			}
			w.Later.Or(both)
			yielding = append(yielding, w)
		}
	}
	return yielding
}

func readWindows(windows []*reading.Window) []*reading.Window {
	return slices.DeleteFunc(slices.Clone(windows), func(w *reading.Window) bool { return w.IDs == nil })
}

// readAgain reads what forget removes of windows once more. It reads results without
// a date last, because the other windows show which of them got a date.
func (c *Reconciler) readAgain(ctx context.Context, windows []*reading.Window, why string, forget func(context.Context, *reading.Window) error) error {
	var dated, undated []*reading.Window
	for _, w := range windows {
		c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "window is read again", slog.String("window", w.Name()), slog.String("reason", why))
		switch {
		case w.Undated != nil:
			undated = append(undated, w)
		case w.IDs == nil: // the planner counted no results in it
			at := slices.Index(c.Windows, w)
			_, planned, err := c.plan(ctx, w.Planned.Window, w.Older, at, at+1, c.Reader.Counter())
			if err != nil {
				return err
			}
			dated = append(dated, planned...)
		default:
			dated = append(dated, w)
		}
	}
	for _, w := range slices.Concat(dated, undated) {
		if w.IDs != nil {
			c.search.expected.Or(w.IDs)
		}
		if err := forget(ctx, w); err != nil {
			return err
		}
	}
	c.Work.Reread += len(dated) + len(undated)
	if err := c.Reader.Read(ctx, dated); err != nil {
		return err
	}
	return c.Reader.Read(ctx, undated)
}

// plan divides a span into windows. They replace the run's windows with indexes
// from `from` up to `to`. It returns the plan and the new windows that may hold
// results. Without a counter nothing is counted. No window crosses one of the cuts.
func (c *Reconciler) plan(ctx context.Context, span extract.Window, older *reading.Older, from, to int, count extract.Counter, cuts ...time.Time) (*extract.Plan, []*reading.Window, error) {
	plan := &extract.Plan{Windows: []extract.Planned{{Window: span, Count: extract.Unknown}}, Groups: []int64{extract.Unknown}, Total: extract.Unknown}
	if count != nil || !span.From.IsZero() {
		var err error
		if plan, err = c.Reader.NewPlan(ctx, c.Interval, span, count, cuts...); err != nil {
			return nil, nil, err
		}
	}
	fresh := reading.Windows(plan)
	for _, w := range fresh {
		w.Older = older
	}
	c.Windows = slices.Replace(c.Windows, from, to, fresh...)
	return plan, slices.DeleteFunc(fresh, func(w *reading.Window) bool { return w.Done }), nil
}

// duplicateError returns an error with the windows that hold an id.
func duplicateError(windows []*reading.Window, id uint64) error {
	e := &DuplicateError{ID: id}
	for _, w := range readWindows(windows) {
		if w.IDs.Contains(id) {
			e.Windows = append(e.Windows, w.Planned.Window)
		}
	}
	return e
}
