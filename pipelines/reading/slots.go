package reading

import "context"

// Slots bound what a run does at once over all its forms, such as reading
// windows, which takes memory for pages and batches. A goroutine that has a slot
// never waits for another one, so there is no deadlock.
type Slots chan struct{}

// NewSlots makes so many slots, at least one.
func NewSlots(n int) Slots { return make(Slots, max(1, n)) }

// Hold waits for a slot, and calls do while it has it.
func (p Slots) Hold(ctx context.Context, do func() error) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p }()
	return do()
}
