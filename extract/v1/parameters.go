package v1

import (
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// parameter is one name and value; a presence-only parameter has no value.
type parameter struct {
	name, value string
	bare        bool
}

// parameters holds the parameters of one transaction in the order of sending.
type parameters []parameter

// add appends a parameter, unless its value is empty.
func (ps *parameters) add(name, value string) {
	if value != "" {
		*ps = append(*ps, parameter{name: name, value: value})
	}
}

// addNumber appends a parameter, unless its value is 0 or less.
func (ps *parameters) addNumber(name string, value int64) {
	if value > 0 {
		ps.add(name, strconv.FormatInt(value, 10))
	}
}

// encode returns the query of an address. Values are percent-encoded
// throughout, a space as %20 (specification, section 4).
func encode(ps parameters) string { return join(ps, "&", transport.Escape) }

// detail formats the parameters for people.
func detail(ps parameters) string { return join(ps, ", ", strings.Clone) }

func join(ps parameters, separator string, spell func(string) string) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(spell(p.name))
		if !p.bare {
			b.WriteString("=" + spell(p.value))
		}
	}
	return b.String()
}

// resultsParameters returns those of Get Results (specification, section 4.5).
func resultsParameters(q extract.ResultsQuery) parameters {
	ps := constrain(q.Window, q.IDs)
	// The limit is "a number less than 100", with a default of 100. A strict
	// service refuses a limit of 100, so it is left out (specification, section 8).
	if q.Limit < extract.PageSize {
		ps.addNumber("fs_limit", int64(q.Limit))
	}
	ps.addNumber("fs_page", int64(q.Page))
	ps.add("fs_sort", q.Sort)
	direction := "asc"
	if q.Descending {
		direction = "desc"
	}
	ps.add("fs_sort_direction", direction)
	for _, c := range q.Search.Where {
		ps = append(ps, parameter{name: "fs_search_" + string(c.Operator) + "_" + c.Column, value: c.Term, bare: c.Operator.Bare()})
	}
	if len(q.Search.Where) > 1 {
		method := "and"
		if q.Search.Any {
			method = "or"
		}
		ps.add("fs_search_method", method)
	}
	ps.add("fs_view", q.View)
	if q.Headings {
		ps = append(ps, parameter{name: "fs_include_headings", bare: true})
	}
	ps.add("fs_custom_labels", q.CustomLabels)
	return ps
}

// constrain returns the bounds of results and counts as parameters. Both bounds of the
// service are inclusive, so a window's exclusive end is sent as one second earlier.
func constrain(w extract.Window, ids extract.IDRange) (ps parameters) {
	if !w.From.IsZero() {
		ps.add("fs_min_date", w.From.Format(extract.WireTime))
	}
	if !w.To.IsZero() {
		ps.add("fs_max_date", w.To.Add(-time.Second).Format(extract.WireTime))
	}
	ps.addNumber("fs_min_id", ids.Min)
	ps.addNumber("fs_max_id", ids.Max)
	return ps
}
