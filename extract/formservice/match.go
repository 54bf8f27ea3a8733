package formservice

import (
	"cmp"
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
	holds, met := false, false
	look := func(value string) {
		met = true
		switch c.Operator {
		case Equals:
			holds = holds || value == c.Term
		case Contains:
			holds = holds || strings.Contains(value, c.Term)
		case Begins:
			holds = holds || strings.HasPrefix(value, c.Term)
		case Ends:
			holds = holds || strings.HasSuffix(value, c.Term)
		case Empty, NotEmpty:
			holds = holds || value != ""
		}
	}
	for _, m := range r.Metas {
		if m.ID == c.Column {
			look(m.Value)
		}
	}
	for _, a := range r.Items {
		if a.ID == c.Column {
			for _, v := range a.Values {
				look(v)
			}
		}
	}
	if !met {
		look("")
	}
	if c.Operator == Empty {
		return !holds
	}
	return holds
}

// filters tells whether the request must look at the results' contents.
func (q *resultsQuery) filters() bool { return len(q.where) > 0 || len(q.view.Where) > 0 }

// accepts tells whether a result passes the view's conditions and the search.
func (q *resultsQuery) accepts(r Result) bool {
	for _, c := range q.view.Where {
		if !c.Holds(r) {
			return false
		}
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

// pick calls yield with the results of the request's page, in order. A page by
// id without a search costs what walk costs; a search looks at every result of
// the bounds up to the page's end; a sort by a column looks at the keys of all
// and holds those up to the page's end.
func (f *Form) pick(q *resultsQuery, s *scratch, yield func(Result)) {
	skip, left := (q.page-1)*q.limit, q.limit
	if q.most > 0 {
		left = min(left, q.most)
	}
	if q.unsorted {
		var done func()
		yield, done = unsorted(yield)
		defer done()
	}
	take := func(r Result) bool {
		yield(r)
		left--
		if left > 0 && q.twice(r.ID) {
			yield(r)
			left--
		}
		return left > 0
	}
	if q.sort != sortByID {
		keys := f.sorted(q, skip+left, s)
		for _, k := range keys[min(skip, len(keys)):] {
			if r, ok := q.load(f, k.id, s); ok && !take(r) {
				return
			}
		}
		return
	}
	if !q.filters() {
		f.stored.walk(q.selection, skip, func(id int64) bool {
			r, _ := q.load(f, id, s)
			return take(r)
		})
		return
	}
	f.stored.walk(q.selection, 0, func(id int64) bool {
		r, _ := q.load(f, id, s)
		if !q.accepts(r) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		return take(r)
	})
}

// unsorted collects results; done gives them to yield in an order of its own.
func unsorted(yield func(Result)) (collect func(Result), done func()) {
	var page []Result
	collect = func(r Result) { page = append(page, r.Clone()) }
	return collect, func() {
		slices.SortFunc(page, func(a, b Result) int { return cmp.Compare(mix(1, uint64(a.ID)), mix(1, uint64(b.ID))) })
		for _, r := range page {
			yield(r)
		}
	}
}
