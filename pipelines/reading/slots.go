package reading

import "context"

// Slots limits what a run does at once over all its forms. Reading a window,
// for example, takes memory for pages and batches. A goroutine with a slot
// never waits for another one, so there is no deadlock.
type Slots chan struct{}

// NewSlots returns n slots, and at least one.
func NewSlots(n int) Slots { return make(Slots, max(1, n)) }

// Hold waits for a slot and keeps it while it calls do. If ctx ends first, it returns the cause.
func (p Slots) Hold(ctx context.Context, do func() error) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p }()
	return do()
}
