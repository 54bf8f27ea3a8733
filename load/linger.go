package load

import (
	"context"
	"time"
)

// Lingering gives a context that is cancelled a while (grace) after ctx is. It
// is for a request that is better finished than broken off. The caller must
// call the function that it returns, as with context.WithCancel.
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
