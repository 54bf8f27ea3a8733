package pipelines

import "context"

// places are for the windows that a run has in flight, over all its forms:
// each of them holds pages, batches and a part that is being encoded. Whoever
// has a place never waits for another one, so nobody waits for ever.
type places chan struct{}

func newPlaces(n int) places { return make(places, max(1, n)) }

// take waits for a place and returns what gives it back.
func (p places) take(ctx context.Context) (giveBack func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
