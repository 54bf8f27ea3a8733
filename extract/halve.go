package extract

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Halving finds by counts where in a span of time or ids something lies: windows of a bounded
// size, results that are missing, results that are gone, or results that have no date.
type Halving[S any] struct {
	// Visit is given a span and its count n, and tells whether to look into the span's halves.
	// exact tells that the service was asked for this count. Otherwise the count is the difference
	// of two counts, and the form may have changed between these.
	Visit func(ctx context.Context, span S, n int64, exact bool) (deeper bool, err error)
	// Divide divides a span for which Visit returned true, and counts its lower half.
	Divide func(ctx context.Context, span S) (lower, upper S, inLower int64, err error)
	// AtOnce visits both halves of a span at once; Visit and Divide must then be safe for
	// concurrent use.
	AtOnce bool
}

// Halve visits a span with the count n, and then its halves where Visit asks for that. The upper
// half's count is n minus that of the lower half.
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
		halves.SetLimit(1) // the upper half is begun when the lower half has ended
	}
	halves.Go(func() error { return h.Halve(ctx, lower, inLower, true) })
	halves.Go(func() error { return h.Halve(ctx, upper, n-inLower, false) })
	return halves.Wait()
}
