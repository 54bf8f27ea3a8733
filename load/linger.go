package load

import (
	"context"
	"time"
)

// Lingering returns a context that is cancelled only when the time grace has passed since ctx
// ended, so that a request can finish. The caller must call the returned function, as with
// context.WithCancel.
func Lingering(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() {
		unwatch()
		cancel(nil)
	}
}

// Grace is how long a run that ends still works at a place that may not answer. The run's
// process may end earlier, but the process of a worker may live on.
const Grace = 3 * time.Second

// Pause waits for the time d. If ctx ends first, it returns the cause of that.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
