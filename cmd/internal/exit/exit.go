// Package exit decides how a command ends: the exit code of an error, the hint
// that tells a person what to do next, and what a signal does.
//
// An error has a class by its type. Code walks the tree of wrapped errors from
// the top, and the outermost error that has a class decides. Of errors that
// stand side by side the worst decides, in the order that contract.md gives. An
// error without a class is a bug of formetl and ends with 70.
//
// The package writes nothing; package telemetry prints the error and its hint.
// Begin reading at Code.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// The exit codes of contract.md, with the numbers of sysexits.h.
const (
	OK           = 0
	Usage        = 64 // wrong flags or arguments
	Data         = 65 // the data do not fit what is declared
	NoInput      = 66 // the service knows no such form or account
	Unavailable  = 69 // the service failed, and asking again does not help
	Bug          = 70
	CantCreate   = 73 // an output cannot be where it is wanted
	IO           = 74
	Temporary    = 75 // the same command may succeed later
	NoPermission = 77 // the service refused the key
	Config       = 78 // the definition is wrong or missing
	Interrupted  = 130
	Terminated   = 143
)

// UsageError is a wrong flag or argument.
type UsageError struct{ Err error }

// Usagef is fmt.Errorf for a *UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Error is the text of the wrapped error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *UsageError) Unwrap() error { return e.Err }

// DataError says that the data do not fit, where no other error does.
type DataError struct{ Err error }

// Error is the text of the wrapped error.
func (e *DataError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *DataError) Unwrap() error { return e.Err }

// DataFault is true.
func (e *DataError) DataFault() bool { return true }

// Code is the exit code of a command that ends with err, OK for nil. A missing
// definition is Config like a wrong one, because both are mended in the job's
// files; NoInput is for the service's answer that it has no such form.
func Code(err error) int {
	if err == nil {
		return OK
	}
	for err != nil {
		if code := codeOf(err); code != OK {
			return code
		}
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case interface{ Unwrap() []error }:
			return worst(e.Unwrap())
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return Bug
		}
	}
	return Bug
}

// worst is the exit code of several failures: Temporary only if all of them
// are, else the first of contract.md's order that occurred.
func worst(errs []error) int {
	seen := map[int]bool{}
	for _, err := range errs {
		if err != nil {
			seen[Code(err)] = true
		}
	}
	for _, code := range []int{
		Interrupted, Terminated, Usage,
		Bug, Config, NoPermission, NoInput, Data, CantCreate, IO, Unavailable, Temporary,
	} {
		if seen[code] {
			return code
		}
	}
	return Bug
}

// codeOf is the class of one error without the errors that it wraps, OK where
// it has none.
func codeOf(err error) int {
	if d, ok := err.(pipelines.DataFault); ok && d.DataFault() { //nolint:errorlint // one node of the tree
		return Data
	}
	switch e := err.(type) { //nolint:errorlint // one node of the tree
	case *StopError:
		if e.Signal == syscall.SIGTERM {
			return Terminated
		}
		return Interrupted
	case *UsageError, *pipelines.UnlistedError, *load.WatermarkError: // only the flag --watermark gives the last
		return Usage
	case *pipelines.DefinitionError, *pipelines.PathError, *pipelines.CollisionError, *pipelines.RangeError, *pipelines.UnsupportedError,
		*pipelines.SchemaChangedError, *pipelines.DatasetChangedError, *load.NameError, *extract.ConfigError, *extract.PlanError, *extract.CostError:
		return Config
	case *extract.RedirectError, *extract.NotServiceError: // the base URL is not the service's, as with error 1
		return Config
	case *pipelines.NoFormsError, *pipelines.NoColumnsError:
		return NoInput
	case *extract.ServiceError:
		return serviceCode(e)
	case *extract.UnclearError: // a person has to look before the command is run again
		return Unavailable
	case *extract.StatusError, *extract.NetworkError:
		if extract.Temporary(err) {
			return Temporary
		}
		return Unavailable
	case *extract.BudgetError, *extract.OutageError, *load.HeldError, *load.TemporaryError,
		*extract.AnswerError: // damaged on its way; an answer that is wrong each time is a data fault
		return Temporary
	case *load.CreateError, *load.ManifestError, *load.UnlistedPartsError:
		return CantCreate
	case *load.IOError, *load.JournalError, *pipelines.StdoutError:
		return IO
	case *pipelines.SpoolError, *fs.PathError, *os.LinkError, *os.SyscallError:
		return fileCode(err)
	}
	switch err { //nolint:errorlint // one node of the tree
	case context.Canceled:
		return Interrupted
	case load.ErrConflict, load.ErrStagedGone, context.DeadlineExceeded:
		return Temporary
	}
	return OK
}

// serviceCode is the class of an error that the service answered with.
func serviceCode(e *extract.ServiceError) int {
	switch {
	case e.Code == extract.CodeInvalidKey:
		return NoPermission
	case e.Code == extract.CodeInvalidUser, e.Code == extract.CodeInvalidForm:
		return NoInput
	case e.Code == extract.CodeInvalidURL:
		return Config
	case e.Temporary():
		return Temporary
	}
	return Unavailable
}

// fileCode is CantCreate where a file or folder cannot be where it is wanted,
// and IO where the disk fails.
func fileCode(err error) int {
	for _, target := range []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS, syscall.ENAMETOOLONG} {
		if errors.Is(err, target) {
			return CantCreate
		}
	}
	return IO
}
