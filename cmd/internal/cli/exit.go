package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
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
	return "stopped by " + e.signal.String()
}

// exitCode tells the exit code of a command's error. A definition that is
// missing is 78 like one that is wrong: both are mended in the job's files,
// and 66 is the service's answer that it has no such form.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	return classify(err)
}

// classify walks the error's tree from its top: the outermost error that has
// a class decides, and of errors that stand side by side the worst.
func classify(err error) int {
	for err != nil {
		if code := codeOf(err); code != exitOK {
			return code
		}
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case interface{ Unwrap() []error }:
			return worst(e.Unwrap())
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return exitBug
		}
	}
	return exitBug
}

// worst is the exit code of several failures: temporary only if all are, else
// the first of contract.md's order that occurred. A stop comes before all.
func worst(errs []error) int {
	seen := map[int]bool{}
	for _, err := range errs {
		if err != nil {
			seen[classify(err)] = true
		}
	}
	for _, code := range []int{
		exitInterrupt, exitTerminated, exitUsage,
		exitBug, exitConfig, exitNoPermit, exitNoInput, exitData, exitCantCreate, exitIO, exitUnavailable, exitTemporary,
	} {
		if seen[code] {
			return code
		}
	}
	return exitBug
}

// codeOf is the class of one error without those that it wraps, exitOK where
// it has none.
func codeOf(err error) int {
	if d, ok := err.(pipelines.DataFault); ok && d.DataFault() { //nolint:errorlint // one node of the tree
		return exitData
	}
	for _, class := range []func(error) int{ownCode, definitionCode, serviceCode, outputCode} {
		if code := class(err); code != exitOK {
			return code
		}
	}
	return exitOK
}

func ownCode(err error) int {
	switch e := err.(type) { //nolint:errorlint // one node of the tree
	case *stopError:
		if e.signal == syscall.SIGTERM {
			return exitTerminated
		}
		return exitInterrupt
	case *usageError, *pipelines.UnlistedError:
		return exitUsage
	}
	if err == context.Canceled { //nolint:errorlint // one node of the tree
		return exitInterrupt
	}
	return exitOK
}

func definitionCode(err error) int {
	switch err.(type) { //nolint:errorlint // one node of the tree
	case *pipelines.DefinitionError, *pipelines.PathError, *pipelines.CollisionError, *pipelines.RangeError, *pipelines.UnsupportedError,
		*pipelines.SchemaChangedError, *pipelines.DatasetChangedError, *load.NameError, *transport.ConfigError, *extract.PlanError, *extract.CostError:
		return exitConfig
	case *pipelines.NoFormsError, *pipelines.NoColumnsError:
		return exitNoInput
	}
	return exitOK
}

func serviceCode(err error) int {
	switch e := err.(type) { //nolint:errorlint // one node of the tree
	case *extract.ServiceError:
		switch {
		case e.Code == extract.CodeInvalidKey:
			return exitNoPermit
		case e.Code == extract.CodeInvalidUser, e.Code == extract.CodeInvalidForm:
			return exitNoInput
		case e.Code == extract.CodeInvalidURL:
			return exitConfig
		case e.Temporary():
			return exitTemporary
		}
		return exitUnavailable
	case *transport.RedirectError, *transport.NotServiceError: // the base URL is not the service's, as with error 1
		return exitConfig
	case *transport.BudgetError, *transport.OutageError:
		return exitTemporary
	case *extract.UnclearError: // somebody has to look before it is asked for again
		return exitUnavailable
	case *transport.AnswerError: // damaged on its way; one that is wrong each time is a data fault
		return exitTemporary
	case *transport.StatusError, *transport.NetworkError:
		if transport.Temporary(err) {
			return exitTemporary
		}
		return exitUnavailable
	}
	return exitOK
}

func outputCode(err error) int {
	if err == load.ErrConflict || err == load.ErrStagedGone || err == context.DeadlineExceeded { //nolint:errorlint // one node of the tree
		return exitTemporary
	}
	switch err.(type) { //nolint:errorlint // one node of the tree
	case *load.WatermarkError: // only --watermark gives one
		return exitUsage
	case *load.HeldError, *load.TemporaryError:
		return exitTemporary
	case *load.CreateError, *load.ManifestError, *load.UnlistedPartsError:
		return exitCantCreate
	case *load.IOError, *load.JournalError, *pipelines.StdoutError:
		return exitIO
	case *pipelines.SpoolError, *fs.PathError, *os.LinkError, *os.SyscallError:
		if cannotBe(err) {
			return exitCantCreate
		}
		return exitIO
	}
	return exitOK
}

// cannotBe tells whether a file or folder cannot be where it was wanted, as
// opposed to a disk that fails.
func cannotBe(err error) bool {
	for _, target := range []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS, syscall.ENAMETOOLONG} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// hint says what to do next where the error itself does not. kept says what
// the command keeps of what it has read, "" where it had read nothing, or
// reads nothing that could be kept.
func hint(err error, code int, command, kept string) string {
	if s, ok := errors.AsType[*extract.ServiceError](err); ok {
		switch s.Code {
		case extract.CodeInvalidKey:
			return "check the API key: it stands on the form's API page"
		case extract.CodeInvalidUser:
			return "check the account: it is the first part of the form's own address"
		case extract.CodeInvalidForm:
			return "check the form's directory; `formetl forms` lists the forms"
		}
	}
	again := "run the same command again"
	switch {
	case kept != "":
		again = kept + "; " + again
	case strings.HasSuffix(command, " copy"): // a second copy would be worse than none
		again = "look with `formetl forms` whether the copy was made, before you " + again
	}
	if b, ok := errors.AsType[*transport.BudgetError](err); ok && code == exitTemporary {
		return again + " after " + b.ComeBack()
	}
	switch {
	case code == exitTemporary && !is[*load.HeldError](err):
		return again + " later"
	case code == exitInterrupt || code == exitTerminated:
		return again
	case code == exitUsage:
		return "see " + command + " --help"
	case code == exitBug:
		return "this is a bug in formetl; please report it with the command and this message"
	case notTheService(err):
		return "check that the base URL is the service's own address"
	}
	return ""
}

// notTheService tells whether something else seems to answer at the base URL.
func notTheService(err error) bool {
	return is[*transport.RedirectError](err) || is[*transport.NotServiceError](err)
}
