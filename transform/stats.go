package transform

import (
	"cmp"
	"maps"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// Fault is the reason why a value does not fit its column, and the column's name. Reasons come
// from a small fixed set and never hold a value.
type Fault struct{ Column, Reason string }

// MarshalText returns the fault as a text, so that a Fault may be a key of a JSON object.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.Reason + "\x00" + f.Column), nil }

// UnmarshalText reads a fault from the text that MarshalText returned.
func (f *Fault) UnmarshalText(key []byte) error {
	f.Reason, f.Column, _ = strings.Cut(string(key), "\x00")
	return nil
}

// Stats counts what a Flattener did. Values of rejected results are not
// counted.
type Stats struct {
	Rows     int64 `json:"rows"`               // number of results written
	Rejected int64 `json:"rejected,omitempty"` // number of results that went to the dead letters
	// Rejects counts rejected results by their first fault.
	Rejects map[Fault]int64 `json:"rejects,omitempty"`
	// Nulled counts values that did not fit and became null.
	Nulled map[Fault]int64 `json:"nulled,omitempty"`
	// FirstNulled is the first value, by column, that did not fit an inferred column and became
	// null: on one line, cut, and never of a column with a pii rule.
	FirstNulled map[string]string `json:"unread,omitempty"`
	// Joined counts, by column, results whose several values were joined into one string. Such
	// counts show that the form has changed.
	Joined map[string]int64 `json:"joined,omitempty"`
	// Shifted counts, by column, wall-clock times that the account's zone
	// skips. They were moved forward by the gap.
	Shifted map[string]int64 `json:"shifted,omitempty"`
	// Ignored counts the occurrences of fields that the schema leaves out.
	Ignored map[schemas.Source]int64 `json:"ignored,omitempty"`
	// Added lists the columns that "unknown: add" appended, in order.
	Added []schemas.Column `json:"-"`
	// Seen describes the values of each column, by source.
	Seen map[schemas.Source]Seen `json:"seen,omitempty"`
}

// Add adds to s the counts of o, which come from later results. Counts are summed, and added
// columns are merged by source.
func (s *Stats) Add(o Stats) {
	s.Rows += o.Rows
	s.Rejected += o.Rejected
	s.Rejects = sum(s.Rejects, o.Rejects)
	s.Nulled = sum(s.Nulled, o.Nulled)
	for column, v := range o.FirstNulled {
		if s.FirstNulled == nil {
			s.FirstNulled = map[string]string{}
		}
		s.FirstNulled[column] = cmp.Or(s.FirstNulled[column], v)
	}
	s.Joined = sum(s.Joined, o.Joined)
	s.Shifted = sum(s.Shifted, o.Shifted)
	s.Ignored = sum(s.Ignored, o.Ignored)
	if len(o.Added) > 0 {
		s.Added = schemas.Merge(s.Added, o.Added)
	}
	if s.Seen == nil && len(o.Seen) > 0 {
		s.Seen = make(map[schemas.Source]Seen, len(o.Seen))
	}
	for from, seen := range o.Seen {
		sum := s.Seen[from]
		sum.add(seen)
		s.Seen[from] = sum
	}
}

// sum adds the counts of b to a and returns a. If a is nil, it returns a copy of b.
func sum[K comparable](a, b map[K]int64) map[K]int64 {
	if a == nil {
		return maps.Clone(b)
	}
	for k, n := range b {
		a[k] += n
	}
	return a
}

// count adds one to m[k] and returns m. It makes m if m is nil.
func count[K comparable](m map[K]int64, k K) map[K]int64 {
	if m == nil {
		m = map[K]int64{}
	}
	m[k]++
	return m
}
