package extract

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Halving finds by counts where in a span something lies: windows of a bounded size, results
// that are missing, that are gone, or that have no date.
type Halving[S any] struct {
	// Visit is given a span and its count, and tells whether to look into its halves. exact
	// tells that the service was asked for this count. Otherwise it is a difference of two, and
	// the form may have changed between them.
	Visit func(ctx context.Context, span S, n int64, exact bool) (deeper bool, err error)
	// Divide divides a span that Visit wants divided, and counts the lower half.
	Divide func(ctx context.Context, span S) (lower, upper S, inLower int64, err error)
	// AtOnce visits both halves of a span at once. Visit and Divide must be safe for that.
	AtOnce bool
}

// Halve visits a span, and then its halves where Visit asks for that. What is not in the lower
// half is in the upper one.
func (h Halving[S]) Halve(ctx context.Context, span S, n int64, exact bool) error {
	deeper, err := h.Visit(ctx, span, n, exact)
	if err != nil || !deeper {
		return err
	}
	lower, upper, inLower, err := h.Divide(ctx, span)
	if err != nil {
		return err
	}
	halves, ctx := errgroup.WithContext(ctx)
	if !h.AtOnce {
		halves.SetLimit(1) // each is begun when the one before has ended
	}
	halves.Go(func() error { return h.Halve(ctx, lower, inLower, true) })
	halves.Go(func() error { return h.Halve(ctx, upper, n-inLower, false) })
	return halves.Wait()
}
