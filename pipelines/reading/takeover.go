package reading

import (
	"context"
	"slices"

	"github.com/formetl/formetl/pipelines/checkpoint"
)

// TakeOver gives each window the pieces of an earlier run that lie completely
// within it. It removes all other pieces from the checkpoint. It returns how many
// windows are complete then, and how many results were taken over.
func (r *Reader) TakeOver(ctx context.Context, windows []*Window, inherited *checkpoint.Inherited) (whole int, results int64, err error) {
	var all []checkpoint.Chain
	for _, w := range windows {
		chains := inherited.Within(w.Planned.Window)
		if len(chains) == 0 || w.Planned.Count == 0 {
			continue // a window counted as empty is not read, unless the verification finds results in it
		}
		if todo := (&Window{Planned: w.Planned, Reading: Reading{Chains: chains}}).unread(); len(todo)-1 > pagesSaved(chains, r.PageSize()) {
			continue // each gap costs a request, and all gaps cost more than the whole window
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
	taken := slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return !w.Taken })
	slices.SortStableFunc(taken, func(a, b *Window) int { return a.ReadAt.Compare(b.ReadAt) })
	for _, w := range taken {
		w.Done = len(w.tails()) == 0 || w.inGroup() && len(w.unread()) == 0
	}
	for _, w := range taken {
		// A group of which nothing is left to read is compared with its count here.
		if w.inGroup() && !slices.ContainsFunc(w.Group.Windows, func(is *Window) bool { return !is.Done }) {
			w.Done = len(w.tails()) == 0
		}
		if w.Done {
			r.numbered(w)
			whole++
		}
	}
	return whole, results, r.Checkpoint.Keep(ctx, all)
}

// pagesSaved returns how many requests it would take to read chains again. size
// is how many results a full page holds.
func pagesSaved(chains []checkpoint.Chain, size int64) int {
	var results int64
	for _, c := range chains {
		results += c.Results()
	}
	return int(results / size)
}
