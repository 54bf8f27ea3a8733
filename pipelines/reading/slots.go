package reading

import "context"

// Slots are for the windows that a run has in flight, over all its forms:
// each of them holds pages, batches and a part that is being encoded. Whoever
// has a slot never waits for another one, so nobody waits for ever.
type Slots chan struct{}

// NewSlots makes so many slots, at least one.
func NewSlots(n int) Slots { return make(Slots, max(1, n)) }

// Hold waits for a slot and does something in it.
func (p Slots) Hold(ctx context.Context, do func() error) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p }()
	return do()
}
