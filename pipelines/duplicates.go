package pipelines

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
)

// rereads is how often a window is read again before the run gives up.
const rereads = 3

// settleDuplicates sees to it that no id is in two windows. An unfinished
// result that is finished during the run leaves its window for a later one;
// the window that was read first is out of date then and is read again.
func (f *formRun) settleDuplicates(ctx context.Context) error {
	for round := 0; ; round++ {
		stale := staleWindows(f.windows)
		if len(stale) == 0 {
			return nil
		}
		if f.collapse(ctx, round) {
			return f.rebuild(ctx)
		}
		if round == rereads {
			return f.duplicateError(stale[0])
		}
		if err := f.readAgain(ctx, stale, "a result is in two windows"); err != nil {
			return err
		}
	}
}

// staleWindows are the windows that hold an id which a later reading found in
// another window.
func staleWindows(windows []*windowRun) []*windowRun {
	read := readWindows(windows)
	slices.SortFunc(read, func(a, b *windowRun) int { return cmp.Compare(b.readAt, a.readAt) })
	seen := roaring64.New()
	var stale []*windowRun
	for _, w := range read {
		if seen.Intersects(w.ids) {
			stale = append(stale, w)
		}
		seen.Or(w.ids)
	}
	return stale
}

func readWindows(windows []*windowRun) []*windowRun {
	var read []*windowRun
	for _, w := range windows {
		if w.ids != nil {
			read = append(read, w)
		}
	}
	return read
}

// readAgain reads windows once more; the result replaces what they held.
func (f *formRun) readAgain(ctx context.Context, windows []*windowRun, why string) error {
	var todo []*windowRun
	for _, w := range windows {
		f.log.LogAttrs(ctx, slog.LevelInfo, "window is read again", slog.String("window", w.name()), slog.String("reason", why))
		if w.ids == nil { // the planner's counts had shown it empty
			planned, err := f.planAgain(ctx, w)
			if err != nil {
				return err
			}
			todo = append(todo, planned...)
			continue
		}
		w.planned.Count = extract.Unknown
		todo = append(todo, w)
	}
	f.report.Reread += len(todo)
	return f.readEach(ctx, todo)
}

// planAgain divides a window that turned out not to be empty, and puts the
// new windows in its place.
func (f *formRun) planAgain(ctx context.Context, w *windowRun) ([]*windowRun, error) {
	r := f.planRange()
	r.Window = w.planned.Window
	plan, err := extract.NewPlan(ctx, r, f.counter())
	if err != nil {
		return nil, err
	}
	all, todo := make([]*windowRun, 0, len(plan.Windows)), []*windowRun(nil)
	for _, p := range plan.Windows {
		fresh := &windowRun{planned: p, index: f.nextIndex(), done: p.Count == 0}
		all = append(all, fresh)
		if p.Count != 0 {
			todo = append(todo, fresh)
		}
	}
	f.mu.Lock()
	at := slices.Index(f.windows, w)
	f.windows = slices.Replace(f.windows, at, at+1, all...)
	f.mu.Unlock()
	for _, out := range f.outputs {
		if d, ok := out.(*datasetOutput); ok {
			d.divide(all)
		}
	}
	return todo, nil
}

// collapse tells whether the service ignores dates: windows repeat each other
// wholesale, and not by one moved result. Then one of them holds everything,
// and the others are emptied.
func (f *formRun) collapse(ctx context.Context, round int) bool {
	var full []*windowRun
	for _, w := range readWindows(f.windows) {
		if !w.ids.IsEmpty() && !w.isUndated() {
			full = append(full, w)
		}
	}
	if len(full) < 2 {
		return false
	}
	for _, w := range full[1:] {
		if !w.ids.Equals(full[0].ids) {
			return false
		}
	}
	if full[0].ids.GetCardinality() == 1 && round == 0 {
		return false // one result may have moved
	}
	const what = "the service ignores fs_min_date and fs_max_date: every window held the same results, one of them was kept"
	f.drift(what)
	f.log.LogAttrs(ctx, slog.LevelWarn, what)
	for _, w := range full[1:] {
		w.empty()
	}
	return true
}

// empty forgets what was read of a window.
func (w *windowRun) empty() {
	w.segment.remove()
	w.stats.Rows, w.stats.Rejected, w.rejects = 0, 0, nil
	w.ids = roaring64.New()
}

// rebuild tells the outputs about every window again.
func (f *formRun) rebuild(ctx context.Context) error {
	for _, w := range readWindows(f.windows) {
		for _, out := range f.outputs {
			if err := out.windowRead(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *formRun) duplicateError(stale *windowRun) error {
	for _, w := range readWindows(f.windows) {
		if w == stale {
			continue
		}
		if both := roaring64.And(w.ids, stale.ids); !both.IsEmpty() {
			return &DuplicateError{ID: both.Minimum(), Windows: []extract.Window{stale.planned.Window, w.planned.Window}}
		}
	}
	return nil
}
