package jsonapi

import (
	"math"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/formservice/internal/query"
)

// criterion is one search parameter.
type criterion struct {
	query.Pair
	operator, column string
}

// search reads search_method and the four search parameters.
func (s *Service) search(sel *Selection, criteria []criterion, p query.Pair, f *Form) (_ []criterion, known bool, err error) {
	if p.Name == "search_method" {
		if p.Value != "and" && p.Value != "or" {
			return criteria, true, refuse(p, "and or or")
		}
		sel.Any = p.Value == "or"
		return criteria, true, nil
	}
	for _, operator := range []string{"equals", "contains", "begins", "ends"} {
		rest, ok := strings.CutPrefix(p.Name, "search_"+operator+"[")
		column, closed := strings.CutSuffix(rest, "]")
		if !ok || !closed {
			continue
		}
		if column != byID && column != byResultID && !f.Has(column) {
			return criteria, true, invalid("%s: %q is not a meta or an item of this form", p.Name, column)
		}
		return append(criteria, criterion{p, operator, column}), true, nil
	}
	return criteria, false, nil
}

// condition tells which results meet a criterion. Metas and items that hold
// choices are searched by equals alone, choices by their position.
func (s *Service) condition(c criterion, f *Form, all *questions) (func(Result) bool, error) {
	q := all.known[c.column]
	text := f.IsItem(c.column) && (q == nil || !q.chosen)
	if !text && c.operator != "equals" {
		return nil, invalid("%s: %s is searched by equals only", c.Name, c.column)
	}
	switch {
	case text:
		return c.text, nil
	case q != nil:
		return c.choice(q)
	case c.column == byID || c.column == byResultID:
		id, ok := query.Digits(c.Value, math.MaxInt64)
		if !ok {
			return nil, refuse(c.Pair, "a result id")
		}
		return func(r Result) bool { return r.ID == id }, nil
	}
	want := c.Value
	if at, ok := s.Clock.parse(want); ok && isDate(c.column) {
		want = s.Clock.Text(at)
	}
	value := s.columnValue(c.column)
	return func(r Result) bool { return value(r) == want }, nil
}

// choice finds answers that hold the choice at a position.
func (c criterion) choice(q *question) (func(Result) bool, error) {
	want, ok := query.Digits(c.Value, math.MaxInt32)
	if !ok {
		return nil, refuse(c.Pair, "the position of a choice")
	}
	return func(r Result) bool {
		values := r.values(c.column)
		if len(values) == 1 && values[0] == "" {
			return false // not answered
		}
		return slices.ContainsFunc(values, func(v string) bool {
			at, _ := q.position(v)
			return int64(at) == want
		})
	}, nil
}

// text tells whether a value of the item meets the criterion; an item without
// an answer counts as one empty value.
func (c criterion) text(r Result) bool {
	values := r.values(c.column)
	if len(values) == 0 {
		values = []string{""}
	}
	meets := map[string]func(s, term string) bool{
		"equals": func(s, term string) bool { return s == term }, "contains": strings.Contains,
		"begins": strings.HasPrefix, "ends": strings.HasSuffix,
	}[c.operator]
	return slices.ContainsFunc(values, func(v string) bool { return meets(v, c.Value) })
}

// columnValue returns a function that gives a column's value as answers show
// it: a meta or the first value of an item, "" where there is none.
func (s *Service) columnValue(column string) func(Result) string {
	return func(r Result) string {
		for _, m := range r.Metas {
			if m.ID == column {
				value, _ := s.meta(r.ID, m)
				return value
			}
		}
		if values := r.values(column); len(values) > 0 {
			return values[0]
		}
		return ""
	}
}
