package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// FormsError reports that a command failed for some of its forms. Its work on the
// other forms was done.
type FormsError struct {
	Forms  int    // number of all forms, also of those that did not fail
	What   string // what is counted instead of forms, such as "definition"; "" for forms
	Errors []error
}

// Each calls do for each of the forms, with its definition, one after the other, and adds their
// errors to Errors. Once the context is done it returns the context's cause, also if that happens
// during the last form.
func (e *FormsError) Each(ctx context.Context, def *definition.Definition, forms []string, do func(def *definition.Definition, form string) error) error {
	e.Forms = len(forms)
	for _, form := range forms {
		own, err := def.For(form)
		if err == nil && ctx.Err() == nil {
			err = do(own, form)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			e.Errors = append(e.Errors, fmt.Errorf("form %s: %w", form, err))
		}
	}
	return nil
}

// Add adds an error that concerns no single form, if there is one.
func (e *FormsError) Add(err error) {
	if err != nil {
		e.Errors = append(e.Errors, err)
	}
}

// OrNil returns e as an error, or nil if no error was added.
func (e *FormsError) OrNil() error {
	if len(e.Errors) == 0 {
		return nil
	}
	return e
}

// Error tells how many forms failed, and the error of each form.
func (e *FormsError) Error() string {
	if e.Forms == 1 {
		return e.Errors[0].Error()
	}
	var failed []error
	var doomed, stopped []string // forms that were not begun
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
		return fmt.Sprintf("%d of %d %ss were not started (%s): %v", len(stopped), e.Forms, cmp.Or(e.What, "form"), plain.Few(stopped, 5), notBegun(e.Errors[0]).Err)
	}
	s := fmt.Sprintf("%d of %d %ss failed", len(failed), e.Forms, cmp.Or(e.What, "form"))
	failed, same := oncePerCause(failed)
	if len(same) > 0 {
		s += fmt.Sprintf(", %d of them for the same reason (%s)", len(same), plain.Few(same, 5))
	}
	if len(doomed) > 0 {
		s += fmt.Sprintf("; %s not started for the same reason (%s)", plain.Plural(len(doomed), "other form"), plain.Few(doomed, 5))
	}
	if len(stopped) > 0 {
		s += fmt.Sprintf("; %s not started (%s)", plain.Plural(len(stopped), "other form"), plain.Few(stopped, 5))
	}
	return s + ":\n" + errors.Join(failed...).Error()
}

// oncePerCause leaves out the errors of forms whose request failed for the same reason as that
// of a form before, and returns the names of these forms in same. A refused key, for
// example, is met by all forms whose requests are under way together.
func oncePerCause(failed []error) (told []error, same []string) {
	seen := map[string]bool{}
	for _, err := range failed {
		request, ok := errors.AsType[*transport.RequestError](err)
		if !ok || request.Form == "" || request.Err == nil {
			told = append(told, err)
			continue
		}
		if cause := request.Err.Error(); !seen[cause] {
			seen[cause] = true
			told = append(told, err)
			continue
		}
		same = append(same, request.Form)
	}
	return told, same
}

// notBegun returns the *NotRunError that an error of a single form wraps, nil if it wraps
// none. It does not look into errors that join those of several forms.
func notBegun(err error) *NotRunError {
	for ; err != nil; err = errors.Unwrap(err) {
		if n, is := err.(*NotRunError); is { //nolint:errorlint // the chain is walked by hand
			return n
		}
	}
	return nil
}

// Unwrap returns the forms' errors.
func (e *FormsError) Unwrap() []error { return e.Errors }

// NotRunError reports a form that was not begun, because another form met an error that
// concerns every form, or because the run was told to stop.
type NotRunError struct {
	Form    string
	Stopped bool
	Err     error // the error of the other form, or the reason why the run was told to stop
}

// Error says why the form was not begun.
func (e *NotRunError) Error() string {
	if e.Stopped {
		return fmt.Sprintf("not started: %v", e.Err)
	}
	return fmt.Sprintf("not started, because another form failed with an error that would end each form: %v", e.Err)
}

// Unwrap returns the other form's error, or the reason for the stop.
func (e *NotRunError) Unwrap() error { return e.Err }

// noForms returns the fault, with code 66, of a definition of which no form is left to run.
// chosen are the forms that the flag --form names.
func noForms(def *definition.Definition, chosen []string) error {
	s, cure := "no form of the account matches "+strings.Join(def.Forms, ", "), ""
	if len(chosen) > 0 {
		s = "--form " + strings.Join(chosen, ", ") + " names none of the forms that " + def.File + " reads: " + strings.Join(def.Forms, ", ")
		cure = "give --form a form that the definition lists under forms:, or add this form there; "
	}
	return &definition.Fault{Code: 66, Text: s, Cure: cure + "`" + def.Command("forms") + "` lists the forms of the account"}
}
