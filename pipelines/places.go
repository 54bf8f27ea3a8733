package pipelines

import "context"

// places are for the windows that a run has in flight, over all its forms:
// each of them holds pages, batches and a part that is being encoded. Whoever
// has a place never waits for another one, so nobody waits for ever.
type places chan struct{}

func newPlaces(n int) places { return make(places, max(1, n)) }

// hold waits for a place and does something in it.
func (p places) hold(ctx context.Context, do func() error) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p }()
	return do()
}
