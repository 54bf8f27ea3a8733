package load

import (
	"context"
	"time"
)

// Leaser is a destination that lets one run write at a time.
type Leaser interface {
	// Acquire takes the lease of scope: "" for the whole destination, a file's
	// name for that file alone. A lease that another run holds is a *HeldError.
	// A holder whose process is gone is replaced. A file that cannot be there,
	// because a folder has its name, is a *CreateError.
	Acquire(ctx context.Context, scope string, h Holder) (Lease, error)
}

// Lease is the right to write to a destination.
type Lease interface {
	// Lost is closed when the lease is no longer held though nobody released
	// it; a lease that cannot be lost gives a channel that stays open.
	Lost() <-chan struct{}
	// Release gives the lease back. Releasing twice is harmless.
	Release(ctx context.Context) error
}

// Holder is who holds a lease.
type Holder struct {
	RunID    string    `json:"run_id"`
	Pipeline string    `json:"pipeline"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Since    time.Time `json:"since"`
}
