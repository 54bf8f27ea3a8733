package reading

import (
	"context"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// TakeOver makes the pieces of an earlier run those of windows: each takes the
// ones that lie wholly within it. All others are removed from the checkpoint. It
// gives how many windows are whole by that, and how many results were taken.
func (r *Reader) TakeOver(ctx context.Context, windows []*Window, left *checkpoint.Inherited) (whole int, results int64, err error) {
	var all []checkpoint.Chain
	for _, w := range windows {
		chains := left.Within(w.Planned.Window)
		if len(chains) == 0 || w.Planned.Count == 0 {
			continue // what is counted as empty is not divided into parts; the verification reads it where it is not
		}
		if len(gaps(w.Planned.Window, chains))-1 > pagesSaved(chains) {
			continue // each gap costs a request, and together more than the window
		}
		all = append(all, chains...)
		for _, c := range chains {
			for _, p := range c.Pieces {
				if err := r.Take(w, p); err != nil {
					return whole, results, err
				}
			}
		}
		w.Taken, w.Done = true, false
		results += w.Results()
	}
	for _, w := range inOrderOfReading(windows) {
		if w.Done = len(gaps(w.Planned.Window, w.Chains)) == 0; w.Done {
			w.Number = r.reads.Add(1)
			whole++
		}
	}
	return whole, results, r.Checkpoint.Keep(ctx, all)
}

// pagesSaved is how many requests chains are worth.
func pagesSaved(chains []checkpoint.Chain) int {
	var results int64
	for _, c := range chains {
		results += c.Results()
	}
	return int(results / extract.PageSize)
}

// inOrderOfReading are the windows of which an earlier run read something, the
// one whose oldest piece is the oldest first.
func inOrderOfReading(windows []*Window) []*Window {
	taken := slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return !w.Taken })
	slices.SortStableFunc(taken, func(a, b *Window) int { return a.ReadAt.Compare(b.ReadAt) })
	return taken
}
