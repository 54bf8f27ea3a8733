package load

import (
	"context"
	"time"
)

// Sweeper is a destination that can tell what runs left behind. To find what
// dead runs left, ask for the leftovers first and for the holders then: a run
// that had staged something by the first question holds its lease by the
// second, or has ended.
type Sweeper interface {
	// Leftovers gives what was staged and neither committed nor aborted, and
	// the temporary files of small writes; those of live runs too.
	Leftovers(ctx context.Context) ([]Leftover, error)
	// Remove removes a leftover. One that is gone already is no error. It never
	// removes anything visible, whatever l holds.
	Remove(ctx context.Context, l Leftover) error
	// Holders gives who holds which lease here now. Leases that are free, that
	// have expired, or whose process is gone are left out. Asking disturbs
	// nobody who takes a lease meanwhile.
	Holders(ctx context.Context) ([]ScopedHolder, error)
}

// LeftoverKind says what a leftover is, in words.
type LeftoverKind string

// The kinds of leftovers.
const (
	StagedFile       LeftoverKind = "staged file"
	UnfinishedUpload LeftoverKind = "unfinished upload"
	Temporary        LeftoverKind = "temporary file"
	// OrphanedIDs is an id set that no part of the dataset has. Clean finds and
	// removes it; a Sweeper does not know of it.
	OrphanedIDs LeftoverKind = "id set"
	// UnlistedPart is an object that is named like a part and is in no manifest.
	// Clean finds it, and removes it where it is told to.
	UnlistedPart LeftoverKind = "unlisted part"
)

// Leftover is something that a run staged, or wrote beside the data, and
// neither committed nor aborted.
type Leftover struct {
	Kind  LeftoverKind
	Run   string    // id of the run that made it, "" where that cannot be told
	Name  string    // the final name that it was meant for, "" where that cannot be told
	Path  string    // where it lies, as people know it: a path, or s3://… with the upload's id
	Bytes int64     // -1 where it cannot be told
	Since time.Time // when it was begun, zero where that cannot be told
	Ref   string    // what Remove needs
}

// ScopedHolder is who holds the lease of a scope.
type ScopedHolder struct {
	Scope string // as given to Acquire
	Holder
}

// Limiter is a destination whose objects have a largest size.
type Limiter interface {
	// MaxObjectBytes is the size that no object may exceed.
	MaxObjectBytes() int64
}
