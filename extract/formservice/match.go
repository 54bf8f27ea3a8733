package formservice

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// Operator is a kind of search (specification, section 4.5).
type Operator string

// The operators, as they are spelled in the names of the parameters.
const (
	Equals   Operator = "equals"
	Contains Operator = "contains"
	Begins   Operator = "begins"
	Ends     Operator = "ends"
	Empty    Operator = "empty"
	NotEmpty Operator = "not_empty"
)

func operators() []Operator { return []Operator{Equals, Contains, Begins, Ends, Empty, NotEmpty} }

// Condition is one search criterion.
type Condition struct {
	Column   string // a meta or an item id
	Operator Operator
	Term     string // not read by Empty and NotEmpty
}

// Holds tells whether a result meets the condition.
func (c Condition) Holds(r Result) bool {
	if c.Operator == Empty {
		return !Condition{Column: c.Column, Operator: NotEmpty}.Holds(r)
	}
	return slices.ContainsFunc(r.column(c.Column), func(value string) bool {
		switch c.Operator {
		case Equals:
			return value == c.Term
		case Contains:
			return strings.Contains(value, c.Term)
		case Begins:
			return strings.HasPrefix(value, c.Term)
		case Ends:
			return strings.HasSuffix(value, c.Term)
		}
		return value != ""
	})
}

// filters tells whether the request must look at the results' contents.
func (q *resultsQuery) filters() bool { return len(q.where) > 0 || len(q.view.Where) > 0 }

// accepts tells whether a result passes the view's conditions and the search.
func (q *resultsQuery) accepts(r Result) bool {
	if slices.ContainsFunc(q.view.Where, func(c Condition) bool { return !c.Holds(r) }) {
		return false
	}
	if len(q.where) == 0 {
		return true
	}
	for _, holds := range q.where {
		if holds(r) == q.any {
			return q.any
		}
	}
	return !q.any
}

// count is the number of results that the request selects, on all pages.
func (f *Form) count(q *resultsQuery) int {
	n := 0
	for r := range f.stored.selected(q.selection) {
		if !q.filters() || q.accepts(q.read(f, r)) {
			n++
		}
	}
	return n
}

// pick calls yield with the results of the request's page, in order.
func (f *Form) pick(q *resultsQuery, yield func(Result)) {
	skip, rest := (q.page-1)*q.limit, q.limit
	if q.most > 0 {
		rest = min(rest, q.most)
	}
	if q.unsorted {
		var page []Result
		sorted := yield
		yield = func(r Result) { page = append(page, r) }
		defer func() {
			slices.SortFunc(page, func(a, b Result) int { return cmp.Compare(mix(1, uint64(a.ID)), mix(1, uint64(b.ID))) })
			for _, r := range page {
				sorted(r)
			}
		}()
	}
	for rec := range f.ordered(q) {
		if skip > 0 {
			skip--
			continue
		}
		r := q.read(f, rec)
		yield(r)
		rest--
		if rest > 0 && q.twice(r.ID) {
			yield(r)
			rest--
		}
		if rest == 0 {
			return
		}
	}
}

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

// ordered iterates over the records that the request selects, in its order:
// by the value that it sorts by, then by id.
func (f *Form) ordered(q *resultsQuery) iter.Seq[record] {
	accepted := func(yield func(record) bool) {
		for r := range f.stored.selected(q.selection) {
			if (!q.filters() || q.accepts(q.read(f, r))) && !yield(r) {
				return
			}
		}
	}
	if q.sort == sortByID {
		return accepted
	}
	return func(yield func(record) bool) {
		type keyed struct {
			value string
			record
		}
		var all []keyed
		for r := range accepted {
			all = append(all, keyed{q.sortValue(f, r), r})
		}
		slices.SortFunc(all, func(a, b keyed) int {
			order := cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.id, b.id))
			if q.desc {
				return -order
			}
			return order
		})
		for _, k := range all {
			if !yield(k.record) {
				return
			}
		}
	}
}

// read returns a result as the request shows it.
func (q *resultsQuery) read(f *Form, rec record) Result {
	r := f.stored.result(rec)
	if q.lacks(r.ID) {
		r.Metas = slices.DeleteFunc(slices.Clone(r.Metas), func(m Meta) bool { return m.ID == metaUpdate })
	}
	return r
}

// lacks tells whether the result of that id is shown without its date_update.
func (q *resultsQuery) lacks(id int64) bool { return q.lack > 0 && id%int64(q.lack) == 0 }

// sortValue is what a result is sorted by. Clients sort by date_update the
// whole form: of generated results nothing else is computed.
func (q *resultsQuery) sortValue(f *Form, rec record) string {
	var r Result
	if q.sort == metaUpdate && rec.result == nil {
		r.ID = rec.id
		if g := f.stored.generated; !q.lacks(rec.id) {
			r.Metas = []Meta{{metaUpdate, wallText(g.updated(g.number(rec.id)))}}
		}
	} else {
		r = q.read(f, rec)
	}
	if q.value != nil {
		return q.value(r)
	}
	return r.column(q.sort)[0]
}
