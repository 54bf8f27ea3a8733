package pipelines

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/formetl/formetl/extract"
)

// FormsError is a run some of whose forms failed; the others were committed.
type FormsError struct {
	Forms  int // forms of the run
	Errors []error
}

// Error tells how many forms failed and each one's error.
func (e *FormsError) Error() string {
	if e.Forms == 1 {
		return e.Errors[0].Error()
	}
	var failed []error
	var doomed, stopped []string // that were not begun
	for _, err := range e.Errors {
		switch n := notBegun(err); {
		case n == nil:
			failed = append(failed, err)
		case n.Stopped:
			stopped = append(stopped, n.Form)
		default:
			doomed = append(doomed, n.Form)
		}
	}
	if len(failed) == 0 { // the run was told to stop
		return fmt.Sprintf("%d of %d forms were not begun (%s): %v", len(stopped), e.Forms, few(stopped), notBegun(e.Errors[0]).Err)
	}
	s := fmt.Sprintf("%d of %d forms failed", len(failed), e.Forms)
	if len(doomed) > 0 {
		s += fmt.Sprintf(", and %d were not run because each would fail of the same cause (%s)", len(doomed), few(doomed))
	}
	if len(stopped) > 0 {
		s += fmt.Sprintf(", and %d were not begun (%s)", len(stopped), few(stopped))
	}
	return s + ":\n" + errors.Join(failed...).Error()
}

// notBegun is the error of one form that was not begun, nil for any other and
// for that of a run which holds such a form.
func notBegun(err error) *NotRunError {
	for ; err != nil; err = errors.Unwrap(err) {
		if n, is := err.(*NotRunError); is { //nolint:errorlint // the chain is walked by hand
			return n
		}
	}
	return nil
}

// few lists the first of many names.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Unwrap returns the forms' errors.
func (e *FormsError) Unwrap() []error { return e.Errors }

// NotRunError is a form that was not begun: another one met an error that
// concerns every form, or the run was told to stop.
type NotRunError struct {
	Form    string
	Stopped bool
	Err     error // what the other one met, or what told the run to stop
}

// Error gives the reason.
func (e *NotRunError) Error() string {
	if e.Stopped {
		return fmt.Sprintf("not begun: %v", e.Err)
	}
	return fmt.Sprintf("not run, because it would fail as another form did: %v", e.Err)
}

// Unwrap returns the reason.
func (e *NotRunError) Unwrap() error { return e.Err }

// OutputsError is a form some of whose outputs failed; the others were committed.
type OutputsError struct{ Errors []error }

// Error lists the outputs' errors.
func (e *OutputsError) Error() string { return errors.Join(e.Errors...).Error() }

// Unwrap returns the outputs' errors.
func (e *OutputsError) Unwrap() []error { return e.Errors }

// NoFormsError says that no form is left to run.
type NoFormsError struct {
	Patterns []string // of the definition
	Chosen   []string // of the command line
}

// Error names what was looked for.
func (e *NoFormsError) Error() string {
	s := "no form matches " + strings.Join(e.Patterns, ", ")
	if len(e.Chosen) > 0 {
		s += " and --form " + strings.Join(e.Chosen, ", ")
	}
	return s + "; `formetl forms` lists those of the account"
}

// NoColumnsError is a definition that names no schema, for a form of which no
// run has left columns.
type NoColumnsError struct{ File, Form string }

// Error names both and what to do.
func (e *NoColumnsError) Error() string {
	return fmt.Sprintf("%s has no schema, and no run has left columns of form %s: there is nothing to compare the form with; run it, or write a schema by `formetl schema infer`", e.File, e.Form)
}

// RejectsError is a run that rejected more results than the schema allows.
type RejectsError struct {
	Form     string
	Rejected int64
	Max      int
	Faults   []string // the most frequent reasons, with their counts
}

// Error says how many and why.
func (e *RejectsError) Error() string {
	return fmt.Sprintf("%d results were rejected and max_rejects is %d (%s); mend the schema, or raise max_rejects; nothing was written", e.Rejected, e.Max, strings.Join(e.Faults, "; "))
}

// VerifyError is a range whose results do not agree with the service's count.
type VerifyError struct {
	Counted, Extracted int64
	Windows            []extract.Window // those that do not agree
	Undated            bool             // it is the results without a date that do not agree
}

// Error names the windows.
func (e *VerifyError) Error() string {
	names := make([]string, 0, len(e.Windows))
	for _, w := range e.Windows {
		names = append(names, w.String())
	}
	where := " in the windows " + strings.Join(names, ", ")
	if e.Undated {
		where = " without a date"
	}
	return fmt.Sprintf("the service counts %d results and %d were read; after %d more readings they still do not agree%s; nothing was written: run again when the form is quieter, or set verify: false",
		e.Counted, e.Extracted, rereads, where)
}

// DuplicateError is an id that keeps turning up in two windows.
type DuplicateError struct {
	ID      uint64
	Windows []extract.Window // the zero Window stands for the results without a date
}

// Error names the id and the windows.
func (e *DuplicateError) Error() string {
	names := make([]string, 0, len(e.Windows))
	for _, w := range e.Windows {
		if w == (extract.Window{}) {
			names = append(names, "undated")
			continue
		}
		names = append(names, w.String())
	}
	return fmt.Sprintf("result %d is in more than one window, %s, however often they are read; nothing was written: run again when the form is quieter",
		e.ID, strings.Join(names, " and "))
}

// SchemaChangedError is a column of a committed dataset that the definition
// now describes otherwise.
type SchemaChangedError struct {
	Path, Column, Was, Is string
	Why                   string // what speaks against it; "": readers of the older parts would break
}

// Error names the column and the way out.
func (e *SchemaChangedError) Error() string {
	return fmt.Sprintf("%s: column %s was %s and is %s now; %s: restore it, write to another path, or replace everything with --full",
		e.Path, e.Column, e.Was, e.Is, cmp.Or(e.Why, "readers of the older parts would break"))
}

// DatasetChangedError is a committed dataset that the definition now describes
// otherwise as a whole.
type DatasetChangedError struct{ Path, What, Was, Is string }

// Error names what changed and the way out.
func (e *DatasetChangedError) Error() string {
	return fmt.Sprintf("%s: the %s of the dataset was %s and is %s now; restore it, write to another path, or replace everything with --full", e.Path, e.What, e.Was, e.Is)
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
