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

// encode writes the query of an address. Values are percent-encoded
// throughout, a space as %20 (specification, section 4).
func encode(ps []parameter) string { return join(ps, "&", transport.Escape) }

// detail shows the parameters to people.
func detail(ps []parameter) string { return join(ps, ", ", strings.Clone) }

func join(ps []parameter, separator string, spell func(string) string) string {
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

// resultsParameters are those of Get Results (specification, section 4.5).
func resultsParameters(q extract.ResultsQuery) []parameter {
	ps := constrain(q.Window, q.IDs)
	// "a number less than 100" with a default of 100: a strict service refuses
	// the hundred that it gives when nothing is said (specification, section 8).
	if q.Limit > 0 && q.Limit < extract.PageSize {
		ps = append(ps, parameter{name: "fs_limit", value: strconv.Itoa(q.Limit)})
	}
	if q.Page > 0 {
		ps = append(ps, parameter{name: "fs_page", value: strconv.Itoa(q.Page)})
	}
	if q.Sort != "" {
		ps = append(ps, parameter{name: "fs_sort", value: q.Sort})
	}
	direction := "asc"
	if q.Descending {
		direction = "desc"
	}
	ps = append(ps, parameter{name: "fs_sort_direction", value: direction})
	ps = append(ps, searchParameters(q.Search)...)
	if q.View != "" {
		ps = append(ps, parameter{name: "fs_view", value: q.View})
	}
	if q.Headings {
		ps = append(ps, parameter{name: "fs_include_headings", bare: true})
	}
	if q.CustomLabels != "" {
		ps = append(ps, parameter{name: "fs_custom_labels", value: q.CustomLabels})
	}
	return ps
}

func searchParameters(s extract.Search) []parameter {
	ps := make([]parameter, 0, len(s.Where)+1)
	for _, c := range s.Where {
		ps = append(ps, parameter{name: "fs_search_" + string(c.Operator) + "_" + c.Column, value: c.Term, bare: c.Operator.Bare()})
	}
	if len(s.Where) > 1 {
		method := "and"
		if s.Any {
			method = "or"
		}
		ps = append(ps, parameter{name: "fs_search_method", value: method})
	}
	return ps
}

// constrain gives the bounds that results and counts share. The wire's bounds
// are inclusive, so a window's exclusive end is sent a second earlier.
func constrain(w extract.Window, ids extract.IDRange) (ps []parameter) {
	if !w.From.IsZero() {
		ps = append(ps, parameter{name: "fs_min_date", value: w.From.Format(extract.WireTime)})
	}
	if !w.To.IsZero() {
		ps = append(ps, parameter{name: "fs_max_date", value: w.To.Add(-time.Second).Format(extract.WireTime)})
	}
	if ids.Min > 0 {
		ps = append(ps, parameter{name: "fs_min_id", value: strconv.FormatInt(ids.Min, 10)})
	}
	if ids.Max > 0 {
		ps = append(ps, parameter{name: "fs_max_id", value: strconv.FormatInt(ids.Max, 10)})
	}
	return ps
}
