package reconcile

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/reading"
)

// rereadDuplicates reads windows again until no id is in two windows. A result
// that is finished during the run moves to a later window. Then the window that
// was read first is stale. If a result still is in two windows after that, and the service
// returns it for both when asked for its id, the service ignores dates, which is an error.
func (c *Reconciler) rereadDuplicates(ctx context.Context) error {
	before := idset.Set{} // ids that were in two windows in the round before
	for {
		stale, twice := staleWindows(c.Windows)
		if len(stale) == 0 {
			return nil
		}
		if before = before.Intersect(twice); !before.IsEmpty() {
			if err := c.proveDates(ctx, before.Min()); err != nil {
				return err
			}
		}
		before = twice
		if err := c.readAgain(ctx, stale, "a result came in two windows, because its date changed; it is kept once", c.Reader.ForgetAround(twice)); err != nil {
			return err
		}
	}
}

// staleWindows returns the windows that hold an id which a later reading found
// in another window. twice are the ids that are in two windows.
func staleWindows(windows []*reading.Window) (stale []*reading.Window, twice idset.Set) {
	read := readWindows(windows)
	slices.SortFunc(read, func(a, b *reading.Window) int { return cmp.Compare(b.Number, a.Number) })
	_, twice = idset.Overlap(idsIn(read)...)
	seen := idset.Set{} // ids of twice that windows read later hold
	for _, w := range read {
		own := w.IDs.Intersect(twice)
		if seen.Intersects(own) {
			stale = append(stale, w)
		}
		seen = seen.Union(own)
	}
	return stale, twice
}

// proveDates asks for one result in two windows that hold it. The error says that the service
// ignores dates if it returns the result for both.
func (c *Reconciler) proveDates(ctx context.Context, id int64) error {
	var in []extract.Window
	for _, w := range readWindows(c.Windows) {
		if w.Undated == nil && w.IDs.Contains(id) {
			in = append(in, w.Planned.Window)
		}
	}
	if len(in) < 2 {
		return nil
	}
	return c.Reader.Pages.ProveDates(ctx, id, in[0], in[1])
}

func readWindows(windows []*reading.Window) []*reading.Window {
	return slices.DeleteFunc(slices.Clone(windows), func(w *reading.Window) bool { return w.IDs == nil })
}

// idsIn returns the ids of each window.
func idsIn(windows []*reading.Window) (sets []idset.Set) {
	for _, w := range windows {
		sets = append(sets, w.IDs)
	}
	return sets
}

// readAgain calls forget for each window, which removes all or some of its pieces, and reads
// those once more. It reads results without a date last, because the windows with a date show
// which results got one. why is the reason for the log.
func (c *Reconciler) readAgain(ctx context.Context, windows []*reading.Window, why string, forget func(context.Context, *reading.Window) error) error {
	if len(windows) == 0 {
		return nil
	}
	if err := c.again(); err != nil {
		return err
	}
	var datedWindows, undatedWindows []*reading.Window
	for _, w := range windows {
		c.Reader.Log.LogAttrs(ctx, slog.LevelInfo, "a window is read again", slog.String("window", w.Name()), slog.String("reason", why))
		switch {
		case w.Undated != nil:
			undatedWindows = append(undatedWindows, w)
		case w.IDs == nil: // the planner counted no results in it
			at := slices.Index(c.Windows, w)
			_, planned, err := c.plan(ctx, w.Planned.Window, w.Older, at, at+1, c.Reader.Counter())
			if err != nil {
				return err
			}
			datedWindows = append(datedWindows, planned...)
		default:
			datedWindows = append(datedWindows, w)
		}
	}
	for _, w := range slices.Concat(datedWindows, undatedWindows) {
		if w.IDs != nil {
			c.expected = c.expected.Union(w.IDs)
		}
		if err := forget(ctx, w); err != nil {
			return err
		}
	}
	c.Reread += len(datedWindows) + len(undatedWindows)
	if err := c.Reader.Read(ctx, datedWindows); err != nil {
		return err
	}
	for _, w := range undatedWindows {
		w.Undated.Dated = c.datedIDs()
	}
	return c.Reader.Read(ctx, undatedWindows)
}

// plan divides a span into windows. These replace the run's windows with the indexes from
// `from` up to, but not including, `to`. It returns the plan and the new windows that may hold
// results. Without a counter the service is asked for no counts. No window crosses a cut.
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
		w.Older, w.Summed = older, c.SumsUp()
	}
	c.Windows = slices.Replace(c.Windows, from, to, fresh...)
	return plan, slices.DeleteFunc(fresh, func(w *reading.Window) bool { return w.Done }), nil
}
