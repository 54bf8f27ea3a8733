//go:build duckdb

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// errBusy means that somebody else has the database open for too long.
var errBusy = errors.New("another program has the database open")

// Refusal says why DuckDB refused something. It is wrapped by a *load.CreateError, a
// *load.IOError or a *load.TemporaryError. Its text holds no value of a row.
type Refusal struct {
	What string // in words
	Err  error
}

// Error says what was refused.
func (r *Refusal) Error() string { return r.What }

// Unwrap gives the driver's error.
func (r *Refusal) Unwrap() error { return r.Err }

// isLocked tells whether another process has the database open.
func isLocked(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Could not set lock on file")
}

// failed turns an error of DuckDB or of the file system into one with an explanation and a
// hint. It says that op failed on a name. Errors of package load stay as they are.
func (d *Destination) failed(ctx context.Context, op, name string, err error) error {
	at := d.String() + name
	switch {
	case err == nil:
		return nil
	case tables.Explained(err):
		return err
	case errors.Is(err, errBusy):
		return &load.TemporaryError{
			Op: op, Path: at, Hint: "close the database there, or let readers open it for moments only, and run again",
			Err: &Refusal{What: "another program has the database open", Err: err},
		}
	case ctx.Err() != nil:
		return fmt.Errorf("cannot %s %s: %w", op, at, context.Cause(ctx))
	}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return d.refused(op, at, e)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		if errors.Is(err, syscall.ENOSPC) {
			return &load.IOError{Op: op, Path: at, Hint: "free some space and run again", Err: err}
		}
		return &load.CreateError{Op: op, Path: at, Hint: "correct the path, or allow writing there", Err: err}
	}
	return fmt.Errorf("cannot %s %s: %w", op, at, err)
}

// refused explains an error of DuckDB.
func (d *Destination) refused(op, at string, e *driver.Error) error {
	first, _, _ := strings.Cut(e.Msg, "\n")
	says := func(text string) bool { return strings.Contains(e.Msg, text) }
	cannotUse := func(what, hint string) error {
		return &load.CreateError{Op: op, Path: at, Hint: hint, Err: &Refusal{What: what, Err: tables.Hidden{Err: e}}}
	}
	failed := func(what, hint string) error {
		return &load.IOError{Op: op, Path: at, Hint: hint, Err: &Refusal{What: what, Err: tables.Hidden{Err: e}}}
	}
	switch {
	case says("not a valid DuckDB database file"):
		return cannotUse("the file is no database of DuckDB", "write another path, or move the file away")
	case says("database file with version number"), e.Type == driver.ErrorTypeSerialization:
		return cannotUse("another version of DuckDB wrote the file", "use the program that wrote it to export it, or a newer formetl")
	case says("Permission denied"), says("Read-only file system"):
		return failed("the file system forbids it", "allow this user to read and write the file and its folder")
	case says("No space left on device"):
		return failed("the disk is full", "free some space and run again: nothing that was published is lost")
	case e.Type == driver.ErrorTypeIO:
		return failed("DuckDB says: "+first, "look at the file and its disk")
	case e.Type == driver.ErrorTypeDependency:
		return failed("something depends on what would be changed", "drop what depends on the table or its column, and create it again afterwards")
	case e.Type == driver.ErrorTypeOutOfMemory:
		return failed("DuckDB ran out of memory", "free some memory or disk beside the database")
	case e.Type == driver.ErrorTypeCatalog, e.Type == driver.ErrorTypeTransaction, e.Type == driver.ErrorTypeBinder:
		return failed("DuckDB says: "+first, "look at the database")
	}
	kind, _, _ := strings.Cut(first, ":")
	return failed("DuckDB refused it ("+kind+")", "look at the database")
}
