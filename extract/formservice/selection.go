package formservice

import (
	"iter"
	"math"
)

// selection is what the date and id bounds of a request select.
type selection struct {
	after, before int64 // moments, exclusive, read only if dated
	dated         bool  // there is a date bound: results without a date do not match
	minID, maxID  int64 // inclusive
	desc          bool  // the order of a walk

	// moment is what bounds look at of a result whose date is a wall-clock
	// time; nil: that time itself.
	moment func(id, wall int64) int64
}

// everything selects every result, by ascending id.
var everything = selection{after: math.MinInt64, before: math.MaxInt64, minID: math.MinInt64, maxID: math.MaxInt64}

// hasDate tells whether a result lies within the date bounds.
func (s selection) hasDate(r record) bool {
	if !s.dated || r.date == never {
		return !s.dated
	}
	at := r.date
	if s.moment != nil {
		at = s.moment(r.id, at)
	}
	return s.after < at && at < s.before
}

// selected iterates over the records of a selection in its order.
func (st *stored) selected(s selection) iter.Seq[record] {
	return func(yield func(record) bool) {
		first, _ := st.find(s.minID)
		end, last := st.find(s.maxID)
		if last {
			end++
		}
		for i := first; i < end; i++ {
			r := st.records[i]
			if s.desc {
				r = st.records[end-1-(i-first)]
			}
			if s.hasDate(r) && !yield(r) {
				return
			}
		}
	}
}
