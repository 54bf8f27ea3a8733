package reconcile

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/extract"
)

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

// DataFault is true: the same counts come again.
func (e *VerifyError) DataFault() bool { return true }

// DataFault is true: the same windows hold it again.
func (e *DuplicateError) DataFault() bool { return true }
