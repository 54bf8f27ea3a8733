package transform

import (
	"fmt"

	"github.com/formetl/formetl/schemas"
)

// ValueError reports a value that does not fit a column whose rule is on_error:
// fail. It is a data error (exit code 65).
type ValueError struct {
	Reject
	From schemas.Source
	Type schemas.Type
}

// Error names the result, the column and the reason. It leaves out the value,
// which may be personal data and would end in logs.
func (e *ValueError) Error() string {
	if e.Reason == reasonMissing {
		return fmt.Sprintf("result %d: column %s (from %s) has no value, but the schema says nullable: false; complete the result at the service, or remove nullable: false (with on_error: reject such results are left out)",
			e.ResultID, e.Column, e.From)
	}
	return fmt.Sprintf("result %d: column %s (from %s): a value does not fit the type %s: %s; correct the result at the service, or the column's type in the schema (with on_error: reject such results are left out, with on_error: set_null such values)",
		e.ResultID, e.Column, e.From, e.Type, e.Reason)
}

// ExitCode is 65: the value is not what the schema says.
func (e *ValueError) ExitCode() int { return 65 }

// ColumnsError reports results that need more columns than a schema may have.
// It is a data error (exit code 65).
type ColumnsError struct {
	Columns int // number of columns that the results need, at least
	Max     int
}

// Error says how many columns the results need, and what to do.
func (e *ColumnsError) Error() string {
	return fmt.Sprintf("the results have at least %d columns, but max_columns is %d; nothing was written: raise max_columns in the schema file, or list there the columns that you need and set unknown: ignore",
		e.Columns, e.Max)
}

// ExitCode is 65: the results have more fields than the schema allows.
func (e *ColumnsError) ExitCode() int { return 65 }

// UnknownFieldError reports a field that the schema does not list, although the schema says
// unknown: fail. It is a data error (exit code 65).
type UnknownFieldError struct {
	Column   schemas.Column // the column that unknown: add would give the field
	ResultID int64          // id of a result that has the field
	// Others are further unlisted fields of the same page.
	Others []schemas.Source
}

// Error names the unknown field and what to write into the schema.
func (e *UnknownFieldError) Error() string {
	c, label := e.Column, ""
	if c.Label != "" {
		label = fmt.Sprintf(" (%q)", c.Label)
	}
	text := fmt.Sprintf("result %d has the field %s%s, which is not in the schema, and the schema says unknown: fail; add {name: %q, from: %q, type: %s} to its columns, or set unknown: add (such fields become columns) or unknown: ignore (they are left out)",
		e.ResultID, c.From, label, c.Name, c.From, c.Type)
	for i, from := range e.Others {
		switch {
		case i == 0:
			text += "; the schema also lacks " + from.String()
		case i < mostOthers:
			text += ", " + from.String()
		default:
			return text + fmt.Sprintf(" and %d more", len(e.Others)-i)
		}
	}
	return text
}

// mostOthers is how many further fields an UnknownFieldError names.
const mostOthers = 10

// ExitCode is 65: the form has a field that the schema does not list.
func (e *UnknownFieldError) ExitCode() int { return 65 }
