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
func (c *jsonCall) asked() (q resultsQuery, no *refusal) {
	q = newResultsQuery()
	q.moment = c.clock.compared
	no = c.read(&q, c.bound, c.shape, c.search)
	q.dated = q.after != everything.after || q.before != everything.before
	if q.sort != sortByID {
		q.value = c.columnValue(q.sort)
	}
	return q, no
}

// bound reads the four bounds, all exclusive.
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

// search reads the four search parameters.
func (c *jsonCall) search(q *resultsQuery, p pair) (known bool, no *refusal) {
	for _, operator := range []Operator{Equals, Contains, Begins, Ends} {
		rest, ok := strings.CutPrefix(p.name, "search_"+string(operator)+"[")
		column, closed := strings.CutSuffix(rest, "]")
		if !ok || !closed {
			continue
		}
		if column != byID && column != sortByID && !c.form.hasColumn(column) {
			return true, refuse(pair{p.name, column}, "a meta or an item of this form")
		}
		holds, no := c.condition(p, operator, column)
		q.where = append(q.where, holds)
		return true, no
	}
	return false, nil
}

// condition tells which results meet a criterion. Metas and items that hold
// choices are searched by equals alone, choices by their position.
func (c *jsonCall) condition(p pair, operator Operator, column string) (func(Result) bool, *refusal) {
	asked, listed := c.form.item(column)
	chosen := len(asked.Choices) > 0
	text := (listed || c.form.stored.seen[column]) && !chosen
	if !text && operator != Equals {
		return nil, &refusal{code: codeInvalidValue, message: p.name + ": " + column + " is searched by equals only"}
	}
	number, isNumber := digits(p.value, math.MaxInt64)
	switch {
	case text:
		return Condition{Column: column, Operator: operator, Term: p.value}.Holds, nil
	case chosen && !isNumber:
		return nil, refuse(p, "the position of a choice")
	case chosen:
		return func(r Result) bool {
			values, _ := r.Values(column)
			answered := len(values) != 1 || values[0] != ""
			return answered && slices.ContainsFunc(values, func(v string) bool {
				at, _ := asked.position(v)
				return int64(at) == number
			})
		}, nil
	case (column == byID || column == sortByID) && !isNumber:
		return nil, refuse(p, "a result id")
	case column == byID || column == sortByID:
		return func(r Result) bool { return r.ID == number }, nil
	}
	want := p.value
	if at, ok := c.clock.parse(want); ok && isDate(column) {
		want = c.clock.text(at)
	}
	value := c.columnValue(column)
	return func(r Result) bool { return value(r) == want }, nil
}

// columnValue returns a function that gives a column's value as answers show
// it: a meta or the first value of an item, "" where there is none.
func (c *jsonCall) columnValue(column string) func(Result) string {
	return func(r Result) string {
		if v, ok := r.Meta(column); ok {
			v, _ = c.meta(r.ID, Meta{column, v})
			return v
		}
		return r.column(column)[0]
	}
}
