package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

// State is where runs keep what later runs need: a folder, or a prefix of a bucket that
// several hosts share.
type State struct {
	load.Destination
	Place string       // the folder's absolute path or the bucket's address, for people
	Log   *slog.Logger // may be nil
}

// NewState returns the state that a destination keeps. place is the folder's absolute path or
// the bucket's address.
func NewState(d load.Destination, place string) State {
	return State{Destination: d, Place: place}
}

// Remote tells whether the state is in a bucket, where each object costs a request.
func (s State) Remote() bool { return strings.Contains(s.Place, "://") }

// PathOf returns the path or address of an object of the state, for people.
func (s State) PathOf(name string) string {
	if s.Remote() {
		return strings.TrimSuffix(s.Place, "/") + "/" + name
	}
	return filepath.Join(s.Place, filepath.FromSlash(name))
}

// StateError reports that the state cannot be read or written.
type StateError struct {
	Place string
	Err   error
}

// Error names the state's place and the cause, and proposes --state.
func (e *StateError) Error() string {
	return fmt.Sprintf("the state in %s cannot be used: %v; to keep budgets and what unfinished runs had read elsewhere, give --state FOLDER", e.Place, e.Err)
}

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Err }

// Temporary returns false: the state was tried for long already, and whatever needs the state
// is not tried again at once.
func (e *StateError) Temporary() bool { return false }

// UnreachedError reports that the state cannot be reached at the start of a run, before
// anything is asked of the service.
type UnreachedError struct{ Err error }

// Error returns the text of the state's error.
func (e *UnreachedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachedError) Unwrap() error { return e.Err }

// Fail wraps an error of the state in a *StateError. It leaves alone the errors for a missing
// object, a lost race and a lease that another run holds, which are part of how the state is
// used.
func (s State) Fail(err error) error {
	_, held := errors.AsType[*load.HeldError](err)
	if err == nil || held || errors.Is(err, load.ErrNotExist) || errors.Is(err, load.ErrConflict) {
		return err
	}
	return &StateError{Place: s.Place, Err: err}
}

const (
	// patience is how long requests to a bucket that does not answer are repeated.
	patience = time.Minute
	// again is the pause before each repetition.
	again = time.Second
)

// Try calls do, which reads or writes the state. Where a bucket cannot be reached, it repeats
// do for a minute. It returns the error as Fail does.
func (s State) Try(ctx context.Context, do func() error) error {
	began := time.Now()
	for {
		err := do()
		if away := errors.Is(err, load.ErrAway); !away || !s.Remote() || time.Since(began) > patience {
			return s.Fail(err)
		}
		if err := load.Pause(ctx, again); err != nil {
			return err
		}
	}
}
