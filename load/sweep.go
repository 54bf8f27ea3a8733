package load

import (
	"context"
	"time"
)

// Sweeper lists what runs left behind. To find what dead runs
// left, call Leftovers first and then Holders. A live run that staged a listed leftover
// holds its lease at the second call. If no lease is held, the run has ended.
type Sweeper interface {
	// Leftovers returns the objects that were staged and neither committed nor
	// aborted, and temporary files of Put. It includes those of live runs.
	Leftovers(ctx context.Context) ([]Leftover, error)
	// Remove removes a leftover. It is no error if the leftover is gone. It
	// never removes committed data, whatever l holds.
	Remove(ctx context.Context, l Leftover) error
	// Holders returns the leases that are held here now. Leases that have
	// expired or whose process is gone are left out. The call does not disturb
	// a run that takes a lease at the same time.
	Holders(ctx context.Context) ([]ScopedHolder, error)
}

// LeftoverKind says what a leftover is, for messages.
type LeftoverKind string

// The kinds of leftovers.
const (
	StagedFile       LeftoverKind = "staged file"
	UnfinishedUpload LeftoverKind = "unfinished upload"
	Temporary        LeftoverKind = "temporary file"
	// OrphanedIDs is an id set that no part of the dataset has. Clean finds it;
	// a Sweeper does not list it.
	OrphanedIDs LeftoverKind = "id set"
	// OrphanedLetters are dead letters that no part of the dataset has, like OrphanedIDs.
	OrphanedLetters LeftoverKind = "dead letters"
	// UnlistedPart is an object that is named like a part but is in no
	// manifest. Clean finds it, and removes it with CleanOptions.Unlisted.
	UnlistedPart LeftoverKind = "unlisted part"
)

// Leftover is an object that a run staged or wrote beside the data, and neither
// committed nor aborted.
type Leftover struct {
	Kind  LeftoverKind
	Run   string    // id of the run that made it, "" if unknown
	Name  string    // its intended final name, "" if unknown
	Path  string    // for messages: a path, or s3://… with the upload's id
	Bytes int64     // -1 if unknown
	Since time.Time // when it was begun or last written, zero if unknown
	Ref   string    // the destination's own reference, for Remove
}

// ScopedHolder is the holder of the lease of a scope.
type ScopedHolder struct {
	Scope string `json:"scope,omitempty"` // as given to Acquire
	Holder
}

// Limiter is a destination that limits the size of objects.
type Limiter interface {
	// MaxObjectBytes is the size that no object may exceed.
	MaxObjectBytes() int64
}
