package reconcile

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/extract"
)

// VerifyError reports that what was read does not agree with the service's count, which
// did not change while it was read again.
type VerifyError struct {
	Counted, Extracted int64
	Windows            []extract.Window // the windows that do not agree
	Undated            bool             // the results without a date do not agree
	Untold             bool             // no count of the service has agreed in this run
}

// Error names the windows.
func (e *VerifyError) Error() string {
	what, where := "results", " in the windows "+names(e.Windows, ", ")
	if e.Undated {
		what, where = "results without a date", ""
	}
	return fmt.Sprintf("the service counts %d %s and sends %d, also when it is asked again%s: its counts do not agree with its pages; nothing was written: `formetl doctor` shows what the service honours",
		e.Counted, what, e.Extracted, where)
}

// DataFault returns true: another run would meet the same counts.
func (e *VerifyError) DataFault() bool { return true }

// UnprovenError reports that a run which must prove what it promises cannot.
type UnprovenError struct{ What string } // what is not proven, and why

// Error says what is not proven.
func (e *UnprovenError) Error() string {
	return "not verified: " + e.What + "; nothing was written, because the run must prove what it reads (--strict, or verify: required)"
}

// DataFault returns true: another run would prove no more.
func (e *UnprovenError) DataFault() bool { return true }

// BusyError reports a form that changes faster than it can be read.
type BusyError struct {
	Window   string // the one that was read again most often
	Times    int    // how often it was read
	Requests int64  // that were sent to find and read again what changed
}

// Error names the window.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the form changes faster than it can be read: %d requests went into finding and reading again what changed, most of them for the window %s, which was read %d times; nothing was written",
		e.Requests, e.Window, e.Times)
}

// Temporary returns true: the form may be quieter later.
func (e *BusyError) Temporary() bool { return true }

// leastRereads is how many requests a run may always spend on reading again.
const leastRereads = 200

// again is called before anything is read or compared once more. Reading again may cost as
// many requests as the run took until the first time, with what older parts take that are
// read for the first time. Counts and lists of changes, which find what to read, may cost as
// many besides. The error is a *BusyError.
func (c *Reconciler) again() error {
	c.Reader.ForgetOverlaps()
	if c.planned == 0 {
		c.planned = c.sent()
	}
	spent := c.sent() - c.planned
	if spent <= 2*max(leastRereads, c.planned) {
		return nil
	}
	e := &BusyError{Requests: spent}
	for _, w := range c.Windows {
		if w.Tries > e.Times {
			e.Window, e.Times = w.Name(), w.Tries
		}
	}
	return e
}

// sent returns how many requests the form has cost so far.
func (c *Reconciler) sent() int64 {
	r := c.Reader.Client.Requests()
	return r.Results + r.Count + r.Retries
}

// names returns the windows as text for people.
func names(windows []extract.Window, separator string) string {
	const most = 5
	list := make([]string, 0, most+1)
	for i, w := range windows {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(windows)-most))
			break
		}
		list = append(list, w.String())
	}
	return strings.Join(list, separator)
}
