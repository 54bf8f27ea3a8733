package exit

import (
	"errors"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Hint says what to do next where the error itself does not, else "". command
// is the command with its path, such as "formetl run". kept says how much of
// what the command has read is kept, "" for a command that has read nothing.
func Hint(err error, command, kept string) string {
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
	code := Code(err)
	if b, ok := errors.AsType[*extract.BudgetError](err); ok && code == Temporary {
		return again + " after " + b.ComeBack()
	}
	switch {
	case code == Temporary && !is[*load.HeldError](err):
		return again + " later"
	case code == Interrupted || code == Terminated:
		return again
	case code == Usage:
		return "see " + command + " --help"
	case code == Bug:
		return "this is a bug in formetl; please report it with the command and this message"
	case is[*extract.RedirectError](err) || is[*extract.NotServiceError](err):
		return "check that the base URL is the service's own address"
	}
	return ""
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
