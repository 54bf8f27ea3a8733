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
	skip, left := (q.page-1)*q.limit, q.limit
	if q.most > 0 {
		left = min(left, q.most)
	}
	if q.unsorted {
		var done func()
		yield, done = unsorted(yield)
		defer done()
	}
	for rec := range f.ordered(q) {
		if skip > 0 {
			skip--
			continue
		}
		r := q.read(f, rec)
		yield(r)
		left--
		if left > 0 && q.twice(r.ID) {
			yield(r)
			left--
		}
		if left == 0 {
			return
		}
	}
}

// unsorted collects results; done gives them to yield in an order of its own.
func unsorted(yield func(Result)) (collect func(Result), done func()) {
	var page []Result
	collect = func(r Result) { page = append(page, r) }
	return collect, func() {
		slices.SortFunc(page, func(a, b Result) int { return cmp.Compare(mix(1, uint64(a.ID)), mix(1, uint64(b.ID))) })
		for _, r := range page {
			yield(r)
		}
	}
}
