package output

import (
	"cmp"
	"errors"
	"fmt"
)

// OutputsError reports that some outputs of a form failed. The others were committed.
type OutputsError struct{ Errors []error }

// Error lists the outputs' errors.
func (e *OutputsError) Error() string { return errors.Join(e.Errors...).Error() }

// Failed returns an *OutputsError of the given errors, or nil if there are none.
func Failed(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return &OutputsError{Errors: errs}
}

// Unwrap returns the outputs' errors.
func (e *OutputsError) Unwrap() []error { return e.Errors }

// SchemaChangedError reports a column of a committed dataset that the
// definition now describes differently.
type SchemaChangedError struct {
	Path, Column, Was, Is string
	Why                   string // the reason against it; "": readers of the older parts would break
}

// Error names the column, the change and what to do.
func (e *SchemaChangedError) Error() string {
	return fmt.Sprintf("%s: column %s was %s and is %s now; %s: restore it, write to another path, or replace everything with --full",
		e.Path, e.Column, e.Was, e.Is, cmp.Or(e.Why, "readers of the older parts would break"))
}

// DatasetChangedError reports that the definition now describes a committed
// dataset differently as a whole.
type DatasetChangedError struct{ Path, What, Was, Is string }

// Error names the change and what to do.
func (e *DatasetChangedError) Error() string {
	return fmt.Sprintf("%s: the %s of the dataset was %s and is %s now; restore it, write to another path, or replace everything with --full", e.Path, e.What, e.Was, e.Is)
}

// DataFault returns true: another run would find the same values.
func (e *ChoicesError) DataFault() bool { return true }

// DataFault returns true: the user must repair the dead letters.
func (e *LettersError) DataFault() bool { return true }
