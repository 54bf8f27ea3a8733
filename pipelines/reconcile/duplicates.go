package reconcile

import (
	"cmp"
	"context"
	"fmt"
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
	if err := c.leaveSecondBefore(ctx); err != nil {
		return err
	}
	before := idset.Set{} // ids that were in two windows in the round before
	for {
		stale, twice := staleWindows(c.Windows)
		if len(stale) == 0 {
			again, err := c.takeBack(ctx)
			if err != nil || !again {
				return err
			}
			continue
		}
		if before = before.Intersect(twice); !before.IsEmpty() {
			yielding := yieldLater(c, before)
			if len(yielding) > 0 {
				stale = yielding
			} else if err := c.proveDates(ctx, before.Min()); err != nil {
				return err
			}
		}
		before = twice
		if err := c.readAgain(ctx, stale, "a result is in two windows", c.Reader.ForgetAround(twice)); err != nil {
			return err
		}
	}
}

// leaveSecondBefore leaves out the results of the second before the range. Where bounds are
// coarser than dates, the range's first window gets these results too, and if a view hides
// the dates, nothing shows that they lie before the range. So the service is asked for the
// results of that second by itself.
func (c *Reconciler) leaveSecondBefore(ctx context.Context) error {
	from := c.Interval.Read.From
	if !c.Reader.CoarseBounds() || c.Reader.Def.Extract.View == "" || c.Reader.Pages.Dated() || from.IsZero() {
		return nil
	}
	at := slices.IndexFunc(c.Windows, func(w *reading.Window) bool { return w.IDs != nil && w.Planned.Window.From.Equal(from) })
	if at < 0 {
		return nil
	}
	if c.before == nil {
		before, err := reading.IDsIn(ctx, c.Reader.Pages, extract.Window{From: from, To: from}, extract.IDRange{})
		if err != nil {
			return fmt.Errorf("reading the second before the range: %w", err)
		}
		c.before = before
	}
	first := c.Windows[at]
	if !first.IDs.Intersects(c.before) {
		return nil
	}
	first.LeaveOut(c.before)
	c.explained = c.explained.Union(c.before)
	return c.readAgain(ctx, []*reading.Window{first}, "it has results of the second before it", c.Reader.ForgetAround(c.before))
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

// yieldLater looks for ids that two adjacent windows still hold after one of them was read again.
// Where bounds are coarser than dates (see reading.Form.CoarseBounds), the service gives results
// at the boundary to both windows, and their dates are not in the answers to tell which window is
// theirs. The earlier window keeps them. yieldLater returns the later windows, which leave these
// ids out from now on.
func yieldLater(c *Reconciler, twice idset.Set) (yielding []*reading.Window) {
	if !c.Reader.CoarseBounds() {
		return nil
	}
	read := readWindows(c.Windows)
	for _, w := range read {
		for _, next := range read {
			if w.Undated != nil || next.Undated != nil || w.Planned.Window.To.IsZero() || !next.Planned.Window.From.Equal(w.Planned.Window.To) {
				continue
			}
			both := w.IDs.Intersect(next.IDs).Intersect(twice)
			if both.IsEmpty() {
				continue
			}
			next.LeaveOut(both)
			yielding = append(yielding, next)
		}
	}
	return yielding
}

// takeBack reads again the windows that left results to the window before them, if the window
// before does not hold these results any more: they moved while both windows were read. It
// returns true if it read any window.
func (c *Reconciler) takeBack(ctx context.Context) (again bool, err error) {
	held := c.readIDs().Union(c.before)
	for _, w := range readWindows(c.Windows) {
		if w.Earlier == nil {
			continue
		}
		lost := w.Earlier.Without(held)
		if lost.IsEmpty() {
			continue
		}
		w.Earlier = w.Earlier.Without(lost)
		if err := c.readAgain(ctx, []*reading.Window{w}, "results that it left out are in no other window", c.Reader.ForgetAround(lost)); err != nil {
			return true, err
		}
		again = true
	}
	return again, nil
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
