package load

import (
	"fmt"
	"slices"
	"time"
)

// Values of Changes.Method and Verified.Method.
const (
	MethodChanges  = "changes"  // the service said which results had changed
	MethodLookback = "lookback" // the last days were read again
	MethodCounts   = "counts"   // the run compared only counts of results

	// MethodPagination compares counts too. The service tells a count as the number of the last
	// page if a page has one result (API v2).
	MethodPagination = "pagination"
	MethodRead       = "read" // the service tells no counts, so that nothing was compared
)

// Changes says how the run that wrote a dataset found the results that had
// changed, and up to when changes are known.
type Changes struct {
	// Method is MethodChanges or MethodLookback.
	Method string `json:"method"`
	// Reason says why the service could not be asked, "" for MethodChanges.
	Reason string `json:"reason,omitempty"`
	// KnownTo is the newest date_update that was taken into account, by the
	// service's clock. It is null if it is not known.
	KnownTo WallTime `json:"known_to"`
	// KnownFrom is where the next run reads the changes from again. It is null for two
	// hours before KnownTo.
	KnownFrom WallTime `json:"known_from,omitzero"`
	// Known are the changes since KnownFrom that the dataset holds.
	Known []ChangedResult `json:"known,omitempty"`
	// UnnamedTo is set if a run ended before it. Results that are dated between the
	// watermark and UnnamedTo were not read yet, and may have changed before KnownFrom, so
	// that no change names them.
	UnnamedTo WallTime `json:"unnamed_to,omitzero"`
	// Witness is the column whose order showed that the service sorts its
	// answers, "" for none.
	Witness string `json:"witness,omitempty"`
	// WitnessAt is when a run last looked for a Witness, by this machine's clock.
	WitnessAt time.Time `json:"witness_at,omitzero"`
	// Later are the ids of results that changed and that lay after the range that the run read.
	Later []int64 `json:"later,omitempty"`
}

// ChangedResult is a result that changed, and when.
type ChangedResult struct {
	ID int64    `json:"id"`
	At WallTime `json:"date_update"` // the meta date_update of the result
}

// problem says where the changes are inconsistent, "" if they are consistent or nil.
func (c *Changes) problem() string {
	switch {
	case c == nil:
		return ""
	case c.Method != MethodChanges && c.Method != MethodLookback:
		return fmt.Sprintf("was made in a way that this version of formetl does not know, %q", c.Method)
	case slices.ContainsFunc(c.Known, func(r ChangedResult) bool { return r.ID < 0 }),
		slices.ContainsFunc(c.Later, func(id int64) bool { return id < 0 }):
		return "contains a negative id"
	}
	return ""
}
