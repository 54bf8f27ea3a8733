package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// The exit codes of contract.md, with the numbers of sysexits.h.
const (
	ExitOK           = 0
	ExitUsage        = 64 // wrong flags or arguments
	ExitData         = 65 // the data do not fit what is declared
	ExitNoInput      = 66 // the service knows no such form or account
	ExitUnavailable  = 69 // the service failed, and asking again does not help
	ExitBug          = 70
	ExitCantCreate   = 73 // an output cannot be written at its path
	ExitIO           = 74
	ExitTemporary    = 75 // the same command may succeed later
	ExitNoPermission = 77 // the service refused the key
	ExitConfig       = 78 // the definition is wrong or missing
	ExitHungUp       = 129
	ExitInterrupted  = 130
	ExitTerminated   = 143
)

// CodeError is an error with the exit code with which it ends the command.
type CodeError struct {
	Code int
	Err  error
}

// Usagef returns an error like fmt.Errorf, with the exit code of a wrong flag or argument.
func Usagef(format string, args ...any) error {
	return &CodeError{ExitUsage, fmt.Errorf(format, args...)}
}

// Error returns the text of the wrapped error.
func (e *CodeError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *CodeError) Unwrap() error { return e.Err }

// ExitCode returns Code.
func (e *CodeError) ExitCode() int { return e.Code }

// ExitCode returns the exit code of a command that ends with err, ExitOK for nil.
//
// Any package gives its errors a code by a method ExitCode() int, and a hint by a method
// Hint() string, which says what to do next. In the tree of wrapped errors the outermost error with
// a code decides. Of errors that are joined side by side the worst decides, in the order that
// contract.md gives. An error without any code is a bug of formetl (ExitBug).
func ExitCode(err error) int {
	code, _ := verdict(err)
	return code
}

// verdict returns the exit code of an error, and the hint: that of the outermost error with a hint
// among the errors that wrap the one that decides the code.
func verdict(err error) (code int, hint string) {
	if err == nil {
		return ExitOK, ""
	}
	for err != nil {
		if h, ok := err.(interface{ Hint() string }); ok { //nolint:errorlint // the tree is walked by hand
			hint = cmp.Or(hint, h.Hint())
		}
		if code := codeOf(err); code != ExitOK {
			return code, hint
		}
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case interface{ Unwrap() []error }:
			code, inner := worst(e.Unwrap())
			return code, cmp.Or(hint, inner)
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return ExitBug, hint
		}
	}
	return ExitBug, hint
}

// worst returns the verdict on several failures: on the first exit code in contract.md's order that
// one of them has. So the code is ExitTemporary only if all failures have it.
func worst(errs []error) (code int, hint string) {
	for _, code := range []int{
		ExitHungUp, ExitInterrupted, ExitTerminated, ExitUsage,
		ExitBug, ExitConfig, ExitNoPermission, ExitNoInput, ExitData, ExitCantCreate, ExitIO, ExitUnavailable, ExitTemporary,
	} {
		for _, err := range errs {
			if is, hint := verdict(err); is == code {
				return code, hint
			}
		}
	}
	return ExitBug, ""
}

// codeOf returns the exit code of one error without the errors that it wraps, ExitOK if it has none.
// Some errors of the standard library are listed here, because they have no method ExitCode.
func codeOf(err error) int {
	switch e := err.(type) { //nolint:errorlint // one node of the tree
	case interface{ ExitCode() int }:
		return e.ExitCode()
	case *fs.PathError, *os.LinkError, *os.SyscallError:
		return fileCode(err)
	}
	switch err { //nolint:errorlint // one node of the tree
	case context.Canceled:
		return ExitInterrupted
	case context.DeadlineExceeded:
		return ExitTemporary
	}
	return ExitOK
}

// fileCode returns ExitCantCreate where a file or folder cannot be at its path, and ExitIO
// where the disk fails.
func fileCode(err error) int {
	misplaced := []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS, syscall.ENAMETOOLONG}
	if slices.ContainsFunc(misplaced, func(target error) bool { return errors.Is(err, target) }) {
		return ExitCantCreate
	}
	return ExitIO
}

// ReaderGone tells whether err means that the reader of standard output has gone (EPIPE).
func ReaderGone(err error) bool {
	_, ok := errors.AsType[*output.StdoutError](err)
	return ok && errors.Is(err, syscall.EPIPE)
}

// again is the text of hints to run the same command once more.
const again = "run the same command again"

// Hint returns what to do next after err. It is "" only where the error's own text says that.
// command is the command with its path, such as "formetl run". resumable says how much of what the
// command has read a later command resumes from; it is "" if the command has read nothing.
func Hint(err error, command, resumable string) string {
	code, hint := verdict(err)
	wrong, ok := errors.AsType[*definition.Error](err)
	if code == ExitConfig && strings.HasSuffix(command, " validate") {
		return "" // the error's text says what to do
	}
	if ok && errors.Is(wrong.Err, fs.ErrNotExist) {
		hint = "run the command with the name of a file that is there"
	}
	if ok && wrong.Err == nil && code == ExitConfig { // the file can be read
		hint = cmp.Or(hint, wrong.Cure, "fix this, then check it with `formetl validate "+definition.ShellWord(wrong.File)+"`")
	}
	hint = cmp.Or(hint, hintOf(code, command))
	if !strings.Contains(hint, "command again") {
		return hint
	}
	if strings.HasSuffix(command, " copy") { // a second copy would be worse than none
		hint = strings.Replace(hint, again, "check with `formetl forms` whether the copy exists, before you "+again, 1)
	}
	if resumable != "" {
		hint += " (" + resumable + ")"
	}
	return hint
}

// hintOf returns the hint for an exit code where the error itself has none.
func hintOf(code int, command string) string {
	switch code {
	case ExitTemporary:
		return again + " later"
	case ExitHungUp, ExitInterrupted, ExitTerminated:
		return again
	case ExitUsage:
		if strings.HasSuffix(command, " help") {
			return "see " + command
		}
		return "see " + command + " --help"
	case ExitConfig:
		return "fix what the message names; then " + again
	case ExitNoPermission:
		return "correct the key or password that the message names; then " + again
	case ExitNoInput:
		return "check the names of the account and the form; `formetl forms` lists the forms"
	case ExitData:
		return "correct what the message names, in the schema or at the service; then " + again
	case ExitCantCreate:
		return "fix the path that the message names, or choose another; then " + again
	case ExitIO:
		return "check the disk or the storage that the message names; then " + again
	case ExitUnavailable:
		return "check in a browser whether the service works; then " + again
	}
	return "this is a bug in formetl; " + ReportBug
}
