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
