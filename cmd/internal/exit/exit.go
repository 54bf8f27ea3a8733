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
	HungUp       = 129
	Interrupted  = 130
	Terminated   = 143
)

// Error is an error that ends the command with a code of its own.
type Error struct {
	Code int
	Err  error
}

// Usagef is fmt.Errorf for a wrong flag or argument.
func Usagef(format string, args ...any) error { return &Error{Usage, fmt.Errorf(format, args...)} }

// Error is the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// DataFault tells whether the data are at fault.
func (e *Error) DataFault() bool { return e.Code == Data }

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

// worst is the exit code of several failures: the first in contract.md's order
// that occurred. So it is Temporary only if all of them are.
func worst(errs []error) int {
	for _, code := range []int{
		HungUp, Interrupted, Terminated, Usage,
		Bug, Config, NoPermission, NoInput, Data, CantCreate, IO, Unavailable, Temporary,
	} {
		if slices.ContainsFunc(errs, func(err error) bool { return Code(err) == code }) {
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
	case *Error:
		return e.Code
	case *StopError:
		switch e.Signal {
		case syscall.SIGTERM:
			return Terminated
		case syscall.SIGHUP:
			return HungUp
		}
		return Interrupted
	case *verify.NothingError, *extract.LacksError,
		*load.WatermarkError: // only the flag --watermark gives it
		return Usage
	case *definition.Error, *definition.PathError, *pipelines.CollisionError, *interval.RangeError, *definition.UnsupportedError,
		*output.SchemaChangedError, *output.DatasetChangedError, *load.NameError, *load.TableError, *transport.ConfigError, *extract.CostError,
		*transport.NotServiceError, // the base URL is not the service's
		*doctor.ZoneError:
		return Config
	case *load.DeniedError:
		return NoPermission
	case *account.NoFormsError, *infer.NoColumnsError:
		return NoInput
	case *extract.ServiceError:
		return serviceCode(e)
	case *reconcile.BusyError:
		return Temporary
	case *extract.FinalError:
		return Unavailable
	case *transport.StatusError, *transport.NetworkError:
		if transport.Temporary(err) {
			return Temporary
		}
		return Unavailable
	case *transport.BudgetError, *transport.OutageError, *load.HeldError, *load.TemporaryError,
		*transport.AnswerError: // damaged on its way; an answer that is wrong each time is a data fault
		return Temporary
	case *load.CreateError, *load.ManifestError, *output.UnlistedPartsError:
		return CantCreate
	case *load.IOError, *output.StdoutError, *doctor.ClockError, *checkpoint.UnreachedError:
		return IO
	case *fs.PathError, *os.LinkError, *os.SyscallError:
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
	misplaced := []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS, syscall.ENAMETOOLONG}
	if slices.ContainsFunc(misplaced, func(target error) bool { return errors.Is(err, target) }) {
		return CantCreate
	}
	return IO
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
	code := Code(err)
	if b, ok := errors.AsType[*transport.BudgetError](err); ok && code == Temporary {
		return again + " after " + b.ComeBack()
	}
	if lacks, ok := errors.AsType[*extract.LacksError](err); ok && lacks.Other != "" {
		return fmt.Sprintf("ask by the other generation: give --api %s, or in a definition `source.api: %[1]s`", lacks.Other)
	}
	final, _ := errors.AsType[*extract.FinalError](err)
	switch {
	case final != nil && final.Remedy != "" || code == Config && strings.HasSuffix(command, " validate"):
		return "" // the message says what to do
	case code == Config && (is[*output.SchemaChangedError](err) || is[*output.DatasetChangedError](err)):
		return "restore what changed; or replace the dataset with `formetl run DEFINITION --full`, or give the output a new path"
	case code == Config && is[*extract.CostError](err):
		return "shorten the range, or raise `max_requests`; then " + again
	case is[*extract.BreachError](err), is[*reconcile.VerifyError](err):
		return "send the table that `formetl doctor DEFINITION` prints to those who run the service; it holds no answers. `formetl init` writes a definition"
	case is[*reconcile.UnprovenError](err):
		return "if you can do without the proof, leave out --strict and `verify: required`; `formetl doctor DEFINITION` shows what the service honours"
	case is[*reconcile.BusyError](err):
		return again + " at a quieter time, or end the range earlier (`to`, or a longer `settle`)"
	case code == Config && is[*transport.NotServiceError](err):
		return "check that the base URL is the service's own address"
	}
	return hintOfClass(code, err, command, again)
}

// hintOfClass is the hint by the class of an error.
func hintOfClass(code int, err error, command, again string) string {
	switch code {
	case Temporary:
		if is[*load.HeldError](err) {
			return "wait until that run has ended; then " + again
		}
		if n, ok := errors.AsType[*transport.NetworkError](err); ok && n.Unreached() {
			return "check that the service is there, and its address; then " + again + " later"
		}
		return again + " later"
	case HungUp, Interrupted, Terminated:
		return again
	case Usage:
		return "see " + command + " --help"
	case Config:
		return "mend what the message names; `formetl validate` checks a definition without the service"
	case NoPermission:
		return "correct the key or the password that the message names; then " + again
	case NoInput:
		return "check account and forms; `formetl forms` lists the forms"
	case Data:
		if e, ok := errors.AsType[*verify.Error](err); ok && e.Commands > 0 {
			return "run what stands under the problems; then " + again
		} else if ok {
			return "do what the problems and the notes say; then " + again
		}
		return "look at what the message names, mend the schema or the data; then " + again
	case CantCreate:
		if is[*output.UnlistedPartsError](err) {
			return "look at these parts; then replace the dataset with `formetl run DEFINITION --full`, or remove them with `formetl clean DEFINITION --unlisted`"
		}
		return "mend the place that the message names, or name another; then " + again
	case IO:
		return "check the disk or the store that the message names; then " + again
	case Unavailable:
		return "look whether the service is well; then " + again
	}
	return "this is a bug in formetl; please report it with the command and this message"
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
