package reconcile

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/reading"
)

// VerifyError reports that what was read does not agree with the service's count.
type VerifyError struct {
	Counted, Extracted int64
	Windows            []extract.Window // the windows that do not agree
	Undated            bool             // the results without a date do not agree
}

// Error names the windows.
func (e *VerifyError) Error() string {
	what, where := "results", " in the windows "+names(e.Windows, ", ")
	if e.Undated {
		what, where = "results without a date", ""
	}
	return fmt.Sprintf("the service counts %d %s and %d were read; after %d more readings they still do not agree%s; nothing was written: run again when the form is quieter, or without verification",
		e.Counted, what, e.Extracted, rereads, where)
}

// DataFault returns true: another run would meet the same counts.
func (e *VerifyError) DataFault() bool { return true }

// DuplicateError reports an id that is in two windows however often they are read.
type DuplicateError struct {
	ID      uint64
	Windows []extract.Window // the zero Window stands for the results without a date
}

// Error names the id and the windows.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("result %d is in more than one window, %s, however often they are read; nothing was written: run again when the form is quieter",
		e.ID, names(e.Windows, " and "))
}

// DataFault returns true: another run would find the id in the same windows.
func (e *DuplicateError) DataFault() bool { return true }

// names returns the windows as text for people.
func names(windows []extract.Window, separator string) string {
	list := make([]string, len(windows))
	for i, w := range windows {
		if list[i] = w.String(); w == (extract.Window{}) {
			list[i] = reading.UndatedName
		}
	}
	return strings.Join(list, separator)
}
