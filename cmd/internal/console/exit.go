package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/doctor"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/pipelines/verify"
)

// The exit codes of contract.md, with the numbers of sysexits.h.
const (
	ExitOK           = 0
	ExitUsage        = 64 // wrong flags or arguments
	ExitData         = 65 // the data do not fit what is declared
	ExitNoInput      = 66 // the service knows no such form or account
	ExitUnavailable  = 69 // the service failed, and asking again does not help
	ExitBug          = 70
	ExitCantCreate   = 73 // an output cannot be where it is wanted
	ExitIO           = 74
	ExitTemporary    = 75 // the same command may succeed later
	ExitNoPermission = 77 // the service refused the key
	ExitConfig       = 78 // the definition is wrong or missing
	ExitHungUp       = 129
	ExitInterrupted  = 130
	ExitTerminated   = 143
)

// CodeError is an error that ends the command with a code of its own.
type CodeError struct {
	Code int
	Err  error
}

// Usagef is fmt.Errorf for a wrong flag or argument.
func Usagef(format string, args ...any) error {
	return &CodeError{ExitUsage, fmt.Errorf(format, args...)}
}

// Error is the text of the wrapped error.
func (e *CodeError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *CodeError) Unwrap() error { return e.Err }

// DataFault tells whether the data are at fault.
func (e *CodeError) DataFault() bool { return e.Code == ExitData }

// ExitCode is the exit code of a command that ends with err, ExitOK for nil.
//
// An error has a class by its type. ExitCode walks the tree of wrapped errors from the top, and
// the outermost error that has a class decides. Of errors that stand side by side the worst
// decides, in the order that contract.md gives. An error without a class is a bug of formetl.
//
// A missing definition is ExitConfig like a wrong one, because both are mended in the job's
// files; ExitNoInput is for the service's answer that it has no such form.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	for err != nil {
		if code := codeOf(err); code != ExitOK {
			return code
		}
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case interface{ Unwrap() []error }:
			return worst(e.Unwrap())
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return ExitBug
		}
	}
	return ExitBug
}

// worst is the exit code of several failures: the first in contract.md's order
// that occurred. So it is Temporary only if all of them are.
func worst(errs []error) int {
	for _, code := range []int{
		ExitHungUp, ExitInterrupted, ExitTerminated, ExitUsage,
		ExitBug, ExitConfig, ExitNoPermission, ExitNoInput, ExitData, ExitCantCreate, ExitIO, ExitUnavailable, ExitTemporary,
	} {
		if slices.ContainsFunc(errs, func(err error) bool { return ExitCode(err) == code }) {
			return code
		}
	}
	return ExitBug
}

// codeOf is the class of one error without the errors that it wraps, OK where
// it has none.
func codeOf(err error) int {
	if d, ok := err.(pipelines.DataFault); ok && d.DataFault() { //nolint:errorlint // one node of the tree
		return ExitData
	}
	switch e := err.(type) { //nolint:errorlint // one node of the tree
	case *CodeError:
		return e.Code
	case *StopError:
		switch e.Signal {
		case syscall.SIGTERM:
			return ExitTerminated
		case syscall.SIGHUP:
			return ExitHungUp
		}
		return ExitInterrupted
	case *verify.NothingError, *extract.LacksError,
		*load.WatermarkError: // only the flag --watermark gives it
		return ExitUsage
	case *definition.Error, *definition.PathError, *pipelines.CollisionError, *interval.RangeError, *definition.UnsupportedError,
		*output.SchemaChangedError, *output.DatasetChangedError, *load.NameError, *load.TableError, *transport.ConfigError, *extract.CostError,
		*transport.NotServiceError, // the base URL is not the service's
		*doctor.ZoneError:
		return ExitConfig
	case *load.DeniedError:
		return ExitNoPermission
	case *account.NoFormsError, *infer.NoColumnsError:
		return ExitNoInput
	case *extract.ServiceError:
		return serviceCode(e)
	case *reconcile.BusyError:
		return ExitTemporary
	case *extract.FinalError:
		return ExitUnavailable
	case *transport.StatusError, *transport.NetworkError:
		if transport.Temporary(err) {
			return ExitTemporary
		}
		return ExitUnavailable
	case *transport.BudgetError, *transport.OutageError, *load.HeldError, *load.TemporaryError,
		*transport.AnswerError: // damaged on its way; an answer that is wrong each time is a data fault
		return ExitTemporary
	case *load.CreateError, *load.ManifestError, *output.UnlistedPartsError:
		return ExitCantCreate
	case *load.IOError, *output.StdoutError, *doctor.ClockError, *checkpoint.UnreachedError:
		return ExitIO
	case *fs.PathError, *os.LinkError, *os.SyscallError:
		return fileCode(err)
	}
	switch err { //nolint:errorlint // one node of the tree
	case context.Canceled:
		return ExitInterrupted
	case load.ErrConflict, load.ErrStagedGone, context.DeadlineExceeded:
		return ExitTemporary
	}
	return ExitOK
}

// ReaderGone tells whether a command ends because nobody reads its standard output any
// more.
func ReaderGone(err error) bool {
	_, ok := errors.AsType[*output.StdoutError](err)
	return ok && errors.Is(err, syscall.EPIPE)
}

// serviceCode is the class of an error that the service answered with.
func serviceCode(e *extract.ServiceError) int {
	switch {
	case e.Code == extract.CodeInvalidKey:
		return ExitNoPermission
	case e.Code == extract.CodeInvalidUser, e.Code == extract.CodeInvalidForm:
		return ExitNoInput
	case e.Code == extract.CodeInvalidURL:
		return ExitConfig
	case e.Temporary():
		return ExitTemporary
	}
	return ExitUnavailable
}

// fileCode is CantCreate where a file or folder cannot be where it is wanted,
// and IO where the disk fails.
func fileCode(err error) int {
	misplaced := []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS, syscall.ENAMETOOLONG}
	if slices.ContainsFunc(misplaced, func(target error) bool { return errors.Is(err, target) }) {
		return ExitCantCreate
	}
	return ExitIO
}

// Hint says what to do next. It is "" only where the error itself ends with that.
// command is the command with its path, such as "formetl run". kept says how much of
// what the command has read is kept, and is "" where it has read nothing.
func Hint(err error, command, kept string) string {
	if is[*doctor.FaultsError](err) {
		return "do what stands under each failed check; then run the same command again"
	}
	if s, ok := errors.AsType[*extract.ServiceError](err); ok {
		switch s.Code {
		case extract.CodeInvalidKey:
			return "check the API key: it stands on the form's API page"
		case extract.CodeInvalidUser:
			return "check the account: it is the first part of the form's own address"
		case extract.CodeInvalidForm:
			return "check the form's directory; `formetl forms` lists the forms"
		case extract.CodeInvalidValue:
			if r, ok := errors.AsType[*transport.RequestError](err); ok && r.Asked != "" {
				return "the likely cause is what was asked for: check " + r.Asked
			}
		}
	}
	again := "run the same command again"
	if strings.HasSuffix(command, " copy") { // a second copy would be worse than none
		again = "look with `formetl forms` whether the copy was made, before you " + again
	}
	hint := hintOf(err, command, again)
	if kept != "" && strings.Contains(hint, again) {
		hint += " (" + kept + ")"
	}
	return hint
}

// hintOf is the hint by the error and its class. again tells to run the command again.
func hintOf(err error, command, again string) string {
	code := ExitCode(err)
	if b, ok := errors.AsType[*transport.BudgetError](err); ok && code == ExitTemporary {
		return again + " after " + b.ComeBack()
	}
	if lacks, ok := errors.AsType[*extract.LacksError](err); ok && lacks.Other != "" {
		return fmt.Sprintf("ask by the other generation: give --api %s, or in a definition `source.api: %[1]s`", lacks.Other)
	}
	final, _ := errors.AsType[*extract.FinalError](err)
	switch {
	case final != nil && final.Remedy != "" || code == ExitConfig && strings.HasSuffix(command, " validate"):
		return "" // the message says what to do
	case code == ExitConfig && (is[*output.SchemaChangedError](err) || is[*output.DatasetChangedError](err)):
		return "restore what changed; or replace the dataset with `formetl run DEFINITION --full`, or give the output a new path"
	case code == ExitConfig && is[*extract.CostError](err):
		return "shorten the range, or raise `max_requests`; then " + again
	case is[*extract.BreachError](err), is[*reconcile.VerifyError](err):
		return "send the table that `formetl doctor DEFINITION` prints to those who run the service; it holds no answers. `formetl init` writes a definition"
	case is[*reconcile.UnprovenError](err):
		return "if you can do without the proof, leave out --strict and `verify: required`; `formetl doctor DEFINITION` shows what the service honours"
	case is[*reconcile.BusyError](err):
		return again + " at a quieter time, or end the range earlier (`to`, or a longer `settle`)"
	case code == ExitConfig && is[*transport.NotServiceError](err):
		return "check that the base URL is the service's own address"
	}
	return hintOfClass(code, err, command, again)
}

// hintOfClass is the hint by the class of an error.
func hintOfClass(code int, err error, command, again string) string {
	switch code {
	case ExitTemporary:
		if is[*load.HeldError](err) {
			return "wait until that run has ended; then " + again
		}
		if n, ok := errors.AsType[*transport.NetworkError](err); ok && n.Unreached() {
			return "check that the service is there, and its address; then " + again + " later"
		}
		return again + " later"
	case ExitHungUp, ExitInterrupted, ExitTerminated:
		return again
	case ExitUsage:
		return "see " + command + " --help"
	case ExitConfig:
		return "mend what the message names; `formetl validate` checks a definition without the service"
	case ExitNoPermission:
		return "correct the key or the password that the message names; then " + again
	case ExitNoInput:
		return "check account and forms; `formetl forms` lists the forms"
	case ExitData:
		if e, ok := errors.AsType[*verify.Error](err); ok && e.Commands > 0 {
			return "run what stands under the problems; then " + again
		} else if ok {
			return "do what the problems and the notes say; then " + again
		}
		return "look at what the message names, mend the schema or the data; then " + again
	case ExitCantCreate:
		if is[*output.UnlistedPartsError](err) {
			return "look at these parts; then replace the dataset with `formetl run DEFINITION --full`, or remove them with `formetl clean DEFINITION --unlisted`"
		}
		return "mend the place that the message names, or name another; then " + again
	case ExitIO:
		return "check the disk or the store that the message names; then " + again
	case ExitUnavailable:
		return "look whether the service is well; then " + again
	}
	return "this is a bug in formetl; please report it with the command and this message"
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
