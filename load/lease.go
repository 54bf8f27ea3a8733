package load

import (
	"context"
	"time"
)

// Leaser lets one run at a time write to a destination or a table.
type Leaser interface {
	// Acquire takes the lease of a scope: "" for the whole destination, or a
	// file's name for that file alone. If another run holds it, the error is a
	// *HeldError. A lease whose holder's process is gone is taken over. If
	// scope is a file's name and a folder has that name, the error is a
	// ErrUnusable.
	Acquire(ctx context.Context, scope string, h Holder) (Lease, error)
}

// Lease is the right to write to a destination.
type Lease interface {
	// Lost returns a channel that is closed if the lease is lost without
	// Release. It is never closed for a lease that cannot be lost.
	Lost() <-chan struct{}
	// Release gives the lease back. A second call does nothing.
	Release(ctx context.Context) error
}

// StillHeld returns a *HeldError if another run has taken over the lease of what lies at path, else
// nil.
func StillHeld(l Lease, path string) error {
	select {
	case <-l.Lost():
		return &HeldError{Path: path}
	default:
		return nil
	}
}

// Holder describes the run that holds a lease.
type Holder struct {
	RunID    string    `json:"run_id"`
	Pipeline string    `json:"pipeline"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Since    time.Time `json:"since"`
}

// ScopedHolder is the holder of the lease of a scope.
type ScopedHolder struct {
	Scope string `json:"scope,omitempty"` // the scope as given to Acquire
	Holder
}

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
