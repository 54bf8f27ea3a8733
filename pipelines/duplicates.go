package pipelines

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

const (
	// rereads is how often a window is read again before the run gives up.
	rereads = 3
	// mostRounds bounds how often duplicates are looked for: on a form that
	// changes with every request new ones come while others go.
	mostRounds = 20
)

// settleDuplicates sees to it that no id is in two windows. An unfinished
// result that is finished during the run leaves its window for a later one;
// the window that was read first is out of date then and is read again.
func (f *formRun) settleDuplicates(ctx context.Context) error {
	var history []*roaring64.Bitmap // [i]: ids that were in two windows in each of the last i+1 rounds
	for round := 0; ; round++ {
		stale, twice := staleWindows(f.windows)
		if len(stale) == 0 {
			return nil
		}
		for i := range history {
			history[i].And(twice)
		}
		history = append([]*roaring64.Bitmap{twice}, history[:min(len(history), rereads)]...)
		if oldest := history[len(history)-1]; len(history) > rereads && !oldest.IsEmpty() {
			return f.duplicateError(oldest.Minimum())
		}
		if round == mostRounds {
			return f.duplicateError(twice.Minimum())
		}
		if err := f.readAgain(ctx, stale, "a result is in two windows"); err != nil {
			return err
		}
	}
}

// staleWindows are the windows that hold an id which a later reading found in
// another window, and twice are those ids.
func staleWindows(windows []*windowRun) (stale []*windowRun, twice *roaring64.Bitmap) {
	read := readWindows(windows)
	slices.SortFunc(read, func(a, b *windowRun) int { return cmp.Compare(b.number, a.number) })
	seen, twice := roaring64.New(), roaring64.New()
	for _, w := range read {
		if seen.Intersects(w.ids) {
			stale = append(stale, w)
			twice.Or(roaring64.And(seen, w.ids))
		}
		seen.Or(w.ids)
	}
	return stale, twice
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

// readAgain reads windows once more; the result replaces what they held. The
// undated come last: which they are depends on the others.
func (f *formRun) readAgain(ctx context.Context, windows []*windowRun, why string) error {
	var dated, undated []*windowRun
	for _, w := range windows {
		f.log.LogAttrs(ctx, slog.LevelInfo, "window is read again", slog.String("window", w.name()), slog.String("reason", why))
		switch {
		case w.undated != nil:
			undated = append(undated, w)
		case w.ids == nil: // the planner's counts had shown it empty
			planned, err := f.planAgain(ctx, w)
			if err != nil {
				return err
			}
			dated = append(dated, planned...)
		default:
			dated = append(dated, w)
		}
	}
	for _, w := range slices.Concat(dated, undated) {
		if err := f.forget(ctx, w); err != nil {
			return err
		}
	}
	f.report.Reread += len(dated) + len(undated)
	if err := f.readEach(ctx, dated); err != nil {
		return err
	}
	return f.readEach(ctx, undated)
}

// planAgain divides a window that turned out not to be empty, and puts the
// new windows in its place. It returns those that may hold results.
func (f *formRun) planAgain(ctx context.Context, w *windowRun) ([]*windowRun, error) {
	plan, err := f.newPlan(ctx, w.planned.Window, f.counter())
	if err != nil {
		return nil, err
	}
	fresh := f.divide(plan)
	for _, n := range fresh {
		n.older = w.older
	}
	at := slices.Index(f.windows, w)
	f.windows = slices.Replace(f.windows, at, at+1, fresh...)
	return slices.DeleteFunc(slices.Clone(fresh), func(w *windowRun) bool { return w.done }), nil
}

// duplicateError names the windows that hold an id.
func (f *formRun) duplicateError(id uint64) error {
	e := &DuplicateError{ID: id}
	for _, w := range readWindows(f.windows) {
		if w.ids.Contains(id) {
			e.Windows = append(e.Windows, w.planned.Window)
		}
	}
	return e
}
