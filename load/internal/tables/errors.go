package tables

import (
	"errors"

	"github.com/formetl/formetl/load"
)

// Explained tells whether an error says by itself what went wrong: one with a class and an
// explanation, or a sentinel of package load.
func Explained(err error) bool {
	_, table := errors.AsType[*load.TableError](err)
	_, name := errors.AsType[*load.NameError](err)
	_, create := errors.AsType[*load.CreateError](err)
	_, io := errors.AsType[*load.IOError](err)
	_, away := errors.AsType[*load.TemporaryError](err)
	_, held := errors.AsType[*load.HeldError](err)
	_, barred := errors.AsType[*load.DeniedError](err)
	return table || name || create || io || away || held || barred ||
		errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrNotExist) || errors.Is(err, load.ErrStagedGone)
}

// Hidden keeps an error of a driver for errors.Is and As, and hides its text. The text may
// hold values of rows.
type Hidden struct{ Err error }

// Error tells nothing of what the driver said.
func (Hidden) Error() string { return "the driver's error" }

// Unwrap returns what the driver said.
func (h Hidden) Unwrap() error { return h.Err }
