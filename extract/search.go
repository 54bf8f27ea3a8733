package extract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract/transport"
)

// Operator is how a search compares a column with a term (specification, section 4.5).
type Operator string

// The search operators.
const (
	OpEquals   Operator = "equals"
	OpContains Operator = "contains"
	OpBegins   Operator = "begins"
	OpEnds     Operator = "ends"
	OpEmpty    Operator = "empty"     // tests whether there is a value: no term
	OpNotEmpty Operator = "not_empty" // tests whether there is a value: no term
)

// Bare tells whether the operator takes no term.
func (o Operator) Bare() bool { return o == OpEmpty || o == OpNotEmpty }

// Criterion is one search parameter: a meta or item id, an operator, a term.
type Criterion struct {
	Column   string
	Operator Operator
	Term     string
	Given    string // what a person called the column, for messages; "" for Column
}

// Search restricts the results. The service takes at most one criterion per
// operator and column (specification, section 4.5, rule 2).
type Search struct {
	Any   bool // criteria combine by "or"; otherwise by "and"
	Where []Criterion
}

// Check returns an error for a search that the service would refuse: an unknown
// operator, no column, or one operator twice on one column.
func (s Search) Check() error {
	seen := map[Criterion]bool{}
	for _, c := range s.Where {
		switch c.Operator {
		case OpEquals, OpContains, OpBegins, OpEnds, OpEmpty, OpNotEmpty:
		default:
			return &transport.Error{Code: 78, Problem: fmt.Sprintf("the search on column %q has the unknown operator %q; use equals, contains, begins, ends, empty or not_empty", c.Column, string(c.Operator))}
		}
		c.Term = ""
		switch {
		case c.Column == "":
			return &transport.Error{Code: 78, Problem: fmt.Sprintf("the search with %s has no column; give the id of a meta or an item", c.Operator)}
		case seen[c]:
			return &transport.Error{Code: 78, Problem: fmt.Sprintf("the search has %s twice on column %q, which the service does not take; remove one of the two", c.Operator, c.Column)}
		}
		seen[c] = true
	}
	return nil
}

// Method returns the value of fs_search_method: "and", "or", or "" for fewer than two criteria.
func (s Search) Method() string {
	switch {
	case len(s.Where) < 2:
		return ""
	case s.Any:
		return "or"
	}
	return "and"
}

// String returns the criterion as text for people.
func (c Criterion) String() string {
	if c.Operator.Bare() {
		return c.Column + " " + string(c.Operator)
	}
	return c.Column + " " + string(c.Operator) + " " + strconv.Quote(c.Term)
}

// String returns the criteria as text for people, "" if there are none. The
// order of the criteria does not matter.
func (s Search) String() string {
	parts := make([]string, len(s.Where))
	for i, c := range s.Where {
		parts[i] = c.String()
	}
	slices.Sort(parts)
	return strings.Join(parts, " "+s.Method()+" ")
}
