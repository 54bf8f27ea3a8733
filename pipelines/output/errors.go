package output

import (
	"cmp"
	"errors"
	"fmt"
)

// OutputsError is a form some of whose outputs failed; the others were committed.
type OutputsError struct{ Errors []error }

// Error lists the outputs' errors.
func (e *OutputsError) Error() string { return errors.Join(e.Errors...).Error() }

// Failed is the error of outputs that failed, nil where none did.
func Failed(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return &OutputsError{Errors: errs}
}

// Unwrap returns the outputs' errors.
func (e *OutputsError) Unwrap() []error { return e.Errors }

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

// DataFault is true: the values are no choices.
func (e *ChoicesError) DataFault() bool { return true }

// DataFault is true: the dead letters have to be mended.
func (e *LettersError) DataFault() bool { return true }
