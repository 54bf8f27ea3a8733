package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/transform"
)

// Exit codes (contract.md; numbers from sysexits.h).
const (
	exitOK          = 0
	exitUsage       = 64
	exitData        = 65
	exitNoInput     = 66
	exitUnavailable = 69
	exitBug         = 70
	exitCantCreate  = 73
	exitIO          = 74
	exitTemporary   = 75
	exitNoPermit    = 77
	exitConfig      = 78
	exitInterrupt   = 130
	exitTerminated  = 143
)

// stopError is a run that a signal stopped in order.
type stopError struct{ signal os.Signal }

// Error names the signal.
func (e *stopError) Error() string {
	return "stopped by " + e.signal.String() + "; nothing half-written was left"
}

// usageError is a wrong flag or argument.
type usageError struct{ err error }

// Error is the flag's error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns it.
func (e *usageError) Unwrap() error { return e.err }

// exitCode tells the exit code of a command's error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if s, ok := errors.AsType[*stopError](err); ok {
		if s.signal == syscall.SIGTERM {
			return exitTerminated
		}
		return exitInterrupt
	}
	if f, ok := errors.AsType[*pipelines.FormsError](err); ok {
		return worst(f.Errors)
	}
	if o, ok := errors.AsType[*pipelines.OutputsError](err); ok {
		return worst(o.Errors)
	}
	for _, classify := range []func(error) int{usageCode, serviceCode, dataCode, outputCode} {
		if code := classify(err); code != exitOK {
			return code
		}
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupt
	}
	return exitBug
}

// worst is the exit code of several failures: temporary only if all are, else
// the first of contract.md's order that occurred.
func worst(errs []error) int {
	seen := map[int]bool{}
	for _, err := range errs {
		seen[exitCode(err)] = true
	}
	for _, code := range []int{
		exitInterrupt, exitTerminated,
		exitBug, exitConfig, exitNoPermit, exitNoInput, exitData, exitCantCreate, exitIO, exitUnavailable, exitTemporary,
	} {
		if seen[code] {
			return code
		}
	}
	return exitBug
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func usageCode(err error) int {
	switch {
	case is[*usageError](err):
		return exitUsage
	case is[*pipelines.DefinitionError](err), is[*pipelines.PathError](err), is[*pipelines.RangeError](err),
		is[*pipelines.UnsupportedError](err), is[*pipelines.SchemaChangedError](err), is[*load.NameError](err),
		is[*extract.RedirectError](err), is[*extract.ConfigError](err):
		return exitConfig
	case is[*pipelines.NoFormsError](err):
		return exitNoInput
	}
	return exitOK
}

func serviceCode(err error) int {
	if s, ok := errors.AsType[*extract.ServiceError](err); ok {
		switch s.Code {
		case extract.CodeInvalidKey:
			return exitNoPermit
		case extract.CodeInvalidUser, extract.CodeInvalidForm:
			return exitNoInput
		case extract.CodeInvalidURL:
			return exitConfig
		}
		if s.Temporary() {
			return exitTemporary
		}
		return exitUnavailable
	}
	switch {
	case is[*extract.BudgetError](err):
		return exitTemporary
	case is[*extract.AnswerError](err):
		return exitData
	case is[*extract.StatusError](err), is[*extract.NetworkError](err):
		if extract.Temporary(err) {
			return exitTemporary
		}
		return exitUnavailable
	}
	return exitOK
}

func dataCode(err error) int {
	switch {
	case is[*pipelines.RejectsError](err), is[*pipelines.VerifyError](err), is[*pipelines.DuplicateError](err),
		is[*transform.ValueError](err), is[*transform.UnknownFieldError](err):
		return exitData
	}
	return exitOK
}

func outputCode(err error) int {
	switch {
	case is[*load.HeldError](err), errors.Is(err, load.ErrConflict), errors.Is(err, load.ErrStagedGone):
		return exitTemporary
	case is[*load.CreateError](err), is[*load.ManifestError](err), errors.Is(err, fs.ErrPermission):
		return exitCantCreate
	case is[*load.IOError](err), is[*pipelines.SpoolError](err), is[*pipelines.StdoutError](err), is[*fs.PathError](err):
		return exitIO
	}
	return exitOK
}

// hint says what to do next where the error itself does not.
func hint(err error, code int) string {
	switch {
	case code == exitNoPermit:
		return "check the API key: it stands on the form's API page"
	case code == exitNoInput && !is[*pipelines.NoFormsError](err):
		return "check the account and the form's directory; `formetl forms` lists the forms"
	case code == exitTemporary && !is[*load.HeldError](err):
		return "nothing was lost; run the same command again later"
	case code == exitUsage:
		return "see formetl --help"
	case code == exitBug:
		return "this is a bug in formetl; please report it with the command and this message"
	case is[*extract.AnswerError](err):
		return "check that the base URL is the service's own address"
	}
	return ""
}
