package reading

import (
	"context"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// A window that changed while it was read is read again. A large window is not read
// again as a whole, but only the pieces of it that are wrong.

// Forget removes what was read of a window from the checkpoint and from w.
func (r *Reader) Forget(ctx context.Context, w *Window) error { return r.forget(ctx, w, w.Pieces()) }

// ForgetAround returns a function that forgets, as Forget does, only those pieces of a window
// that hold, or would hold, one of the ids.
func (r *Reader) ForgetAround(ids idset.Set) func(context.Context, *Window) error {
	return func(ctx context.Context, w *Window) error {
		pieces := slices.DeleteFunc(w.Pieces(), func(p checkpoint.Piece) bool {
			return ids.Between(p.After+1, p.Through).IsEmpty()
		})
		if !divisible(w) || len(pieces) == 0 {
			return r.Forget(ctx, w)
		}
		return r.forget(ctx, w, pieces)
	}
}

// ForgetMiscounted forgets, as Forget does, only those pieces of a window that hold
// another number of results than the service counts. It finds these by counts over ranges of
// ids. The last of w.Counts is the service's count of the whole window. From the second
// time on that counts disagree, and where no piece is wrong by itself, it forgets the whole
// window.
func (r *Reader) ForgetMiscounted(ctx context.Context, w *Window) error {
	if !divisible(w) || w.Disagreed > 1 || len(w.Counts) == 0 {
		return r.Forget(ctx, w)
	}
	pieces, err := r.miscounted(ctx, w.Planned.Window, w.Pieces(), w.Counts[len(w.Counts)-1])
	if err != nil {
		return err
	}
	if len(pieces) == 0 {
		return r.Forget(ctx, w)
	}
	return r.forget(ctx, w, pieces)
}

// divisible tells whether it is worth it to read only some pieces of a window again.
func divisible(w *Window) bool {
	return w.Results() > extract.DefaultTarget && w.OfRange() && len(w.Chains) == 1
}

// miscounted returns the pieces that do not hold as many results as the service counts over
// their ids. pieces are adjacent, and the service counts `counted` results over all of them.
func (f Form) miscounted(ctx context.Context, w extract.Window, pieces []checkpoint.Piece, counted int64) ([]checkpoint.Piece, error) {
	var held int64
	for _, p := range pieces {
		held += p.Results()
	}
	switch {
	case held == counted:
		return nil, nil
	case len(pieces) < 2:
		return pieces, nil
	}
	lower, upper := pieces[:len(pieces)/2], pieces[len(pieces)/2:]
	ids := gap{w, checkpoint.Gap{After: lower[0].After, Through: lower[len(lower)-1].Through}}.ids()
	n, err := f.Client.Count(ctx, f.Name, extract.CountQuery{Window: w, IDs: ids})
	if err != nil {
		return nil, err
	}
	found, err := f.miscounted(ctx, w, lower, n)
	if err != nil {
		return nil, err
	}
	more, err := f.miscounted(ctx, w, upper, counted-n)
	return slices.Concat(found, more), err
}

// forget removes pieces of a window from the checkpoint and from w.
func (r *Reader) forget(ctx context.Context, w *Window, pieces []checkpoint.Piece) error {
	remaining := w.without(pieces)
	n := w.Results() - remaining.Results()
	r.mu.Lock()
	for _, p := range pieces {
		r.rejects.count(p, -1)
	}
	w.Reading, w.Done = remaining, false
	r.mu.Unlock()
	if n > 0 {
		r.Progress(-n)
	}
	return r.Checkpoint.Forget(ctx, pieces...)
}

// without returns the reading without some of its pieces. Unless all pieces are removed, the
// reading must be a single chain.
func (r *Reading) without(pieces []checkpoint.Piece) (remaining Reading) {
	all := r.Pieces()
	if len(pieces) == len(all) {
		return remaining
	}
	remaining.Taken, remaining.IDs, remaining.Chains = r.Taken, r.IDs, []checkpoint.Chain{{Window: r.Chains[0].Window}}
	for _, p := range all {
		if slices.ContainsFunc(pieces, func(gone checkpoint.Piece) bool { return gone.After == p.After }) {
			remaining.IDs = remaining.IDs.Without(remaining.IDs.Between(p.After+1, p.Through))
			continue
		}
		remaining.Chains[0].Add(p)
		remaining.sum(p)
	}
	return remaining
}
