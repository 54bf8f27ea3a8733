package load

import (
	"context"
	"time"
)

// Lingering returns a context that is cancelled only when the time grace has
// passed since ctx ended, so that a request can finish. The caller must call
// the function that it returns, as with context.WithCancel.
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
