package formservice

import (
	"math"
	"slices"
	"strings"
)

const (
	byID           = "id" // what API v2 calls sortByID too
	maxPerPageOfV2 = 500
)

// asked reads the parameters of Get Form Results.
func (c *jsonCall) asked() (resultsQuery, *refusal) {
	q := newResultsQuery()
	q.moment = c.clock.compared
	var criteria []criterion
	for _, p := range c.pairs {
		known, no := c.bound(&q, p)
		if !known && no == nil {
			known, no = c.shape(&q, p)
		}
		if !known && no == nil {
			criteria, known, no = c.search(criteria, p)
		}
		if no != nil {
			return q, no
		}
		if !known {
			return q, c.unknown(p)
		}
	}
	q.dated = q.after != everything.after || q.before != everything.before
	all := newQuestions(c.form, false)
	for _, one := range criteria {
		holds, no := c.condition(one, all)
		if no != nil {
			return q, no
		}
		q.where = append(q.where, holds)
	}
	if q.sort != sortByID {
		q.value = c.columnValue(q.sort)
	}
	return q, nil
}

// bound reads the four bounds, all exclusive. known is false for any other parameter.
func (c *jsonCall) bound(q *resultsQuery, p pair) (known bool, no *refusal) {
	switch p.name {
	case "after_date":
		q.after, no = c.dateBound(p)
	case "before_date":
		q.before, no = c.dateBound(p)
	case "after_id":
		q.minID, no = c.idBound(p)
		q.minID++
	case "before_id":
		q.maxID, no = c.idBound(p)
		q.maxID--
	default:
		return false, nil
	}
	return true, no
}

func (c *jsonCall) idBound(p pair) (int64, *refusal) {
	id, ok := digits(p.value, math.MaxInt64-1)
	if !ok {
		return 0, refuse(p, "a result id")
	}
	return id, nil
}

func (c *jsonCall) dateBound(p pair) (int64, *refusal) {
	at, ok := c.clock.parse(p.value)
	if !ok {
		return 0, refuse(p, "a date like 2026-01-31T23:59:59Z, 2026-01-31 23:59:59 or 2026-01-31")
	}
	if c.faults.on("v2-strict-dates") && (at < 0 || strings.Contains(p.value, ".")) {
		return 0, refuse(p, "a date from 1970 on in whole seconds")
	}
	return c.clock.bound(at), nil
}

// shape reads which page is wanted, in which order and view.
func (c *jsonCall) shape(q *resultsQuery, p pair) (known bool, no *refusal) {
	name := p.name
	switch name {
	case "sort_id":
		name = "sort"
	case "results_view":
		name = "view"
	case "sort", "view": // of v1
		return false, nil
	}
	return c.common(q, name, p, maxPerPageOfV2, c.faults.on("v2-clamp-limit"))
}

// criterion is one search parameter.
type criterion struct {
	pair
	operator Operator
	column   string
}

// search reads the four search parameters.
func (c *jsonCall) search(criteria []criterion, p pair) (_ []criterion, known bool, no *refusal) {
	for _, operator := range []Operator{Equals, Contains, Begins, Ends} {
		rest, ok := strings.CutPrefix(p.name, "search_"+string(operator)+"[")
		column, closed := strings.CutSuffix(rest, "]")
		if !ok || !closed {
			continue
		}
		if column != byID && column != sortByID && !c.form.hasColumn(column) {
			return criteria, true, refuse(pair{p.name, column}, "a meta or an item of this form")
		}
		return append(criteria, criterion{p, operator, column}), true, nil
	}
	return criteria, false, nil
}

// condition tells which results meet a criterion. Metas and items that hold
// choices are searched by equals alone, choices by their position.
func (c *jsonCall) condition(one criterion, all *questions) (func(Result) bool, *refusal) {
	q := all.known[one.column]
	text := c.form.hasItem(one.column) && (q == nil || !q.chosen)
	if !text && one.operator != Equals {
		return nil, &refusal{code: codeInvalidValue, message: one.name + ": " + one.column + " is searched by equals only"}
	}
	switch {
	case text:
		return Condition{Column: one.column, Operator: one.operator, Term: one.value}.Holds, nil
	case q != nil:
		return one.choice(q)
	case one.column == byID || one.column == sortByID:
		id, ok := digits(one.value, math.MaxInt64)
		if !ok {
			return nil, refuse(one.pair, "a result id")
		}
		return func(r Result) bool { return r.ID == id }, nil
	}
	want := one.value
	if at, ok := c.clock.parse(want); ok && isDate(one.column) {
		want = c.clock.text(at)
	}
	value := c.columnValue(one.column)
	return func(r Result) bool { return value(r) == want }, nil
}

// choice finds answers that hold the choice at a position.
func (c criterion) choice(q *question) (func(Result) bool, *refusal) {
	want, ok := digits(c.value, math.MaxInt32)
	if !ok {
		return nil, refuse(c.pair, "the position of a choice")
	}
	return func(r Result) bool {
		values, _ := r.Values(c.column)
		if len(values) == 1 && values[0] == "" {
			return false // not answered
		}
		return slices.ContainsFunc(values, func(v string) bool {
			at, _ := q.position(v)
			return int64(at) == want
		})
	}, nil
}

// columnValue returns a function that gives a column's value as answers show
// it: a meta or the first value of an item, "" where there is none.
func (c *jsonCall) columnValue(column string) func(Result) string {
	return func(r Result) string {
		if v, ok := r.Meta(column); ok {
			v, _ = c.meta(r.ID, Meta{column, v})
			return v
		}
		return firstValue(r, column)
	}
}
