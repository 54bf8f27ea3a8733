package load

import (
	"context"
	"time"
)

// Lingering is a context that ends with ctx, but the grace later: for what has
// begun and is better ended than broken off. The function it returns must be
// called, as that of context.WithCancel.
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
