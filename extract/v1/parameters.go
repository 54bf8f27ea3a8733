package v1

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
)

// resultsParameters returns the parameters of Get Results (specification, section 4.5).
func resultsParameters(q extract.ResultsQuery) transport.Parameters {
	ps := constrain(q.Window, q.IDs)
	// The limit is "a number less than 100", with a default of 100. A strict
	// service refuses a limit of 100, so it is left out (specification, section 8).
	if q.Limit < extract.PageSize {
		ps.AddNumber("fs_limit", int64(q.Limit))
	}
	ps.AddNumber("fs_page", int64(q.Page))
	ps.Add("fs_sort", q.Sort)
	ps.Add("fs_sort_direction", q.Direction())
	for _, c := range q.Search.Where {
		ps = append(ps, transport.Parameter{Name: "fs_search_" + string(c.Operator) + "_" + c.Column, Value: c.Term, Bare: c.Operator.Bare()})
	}
	ps.Add("fs_search_method", q.Search.Method())
	ps.Add("fs_view", q.View)
	if q.Headings {
		ps = append(ps, transport.Parameter{Name: "fs_include_headings", Bare: true})
	}
	ps.Add("fs_custom_labels", q.CustomLabels)
	return ps
}

// constrain returns the bounds of results and counts as parameters. Both bounds of the
// service are inclusive, so a window's exclusive end is sent as one second earlier.
func constrain(w extract.Window, ids extract.IDRange) (ps transport.Parameters) {
	if !w.From.IsZero() {
		ps.Add("fs_min_date", w.From.Format(extract.WireTime))
	}
	if !w.To.IsZero() {
		ps.Add("fs_max_date", w.To.Add(-time.Second).Format(extract.WireTime))
	}
	ps.AddNumber("fs_min_id", ids.Min)
	ps.AddNumber("fs_max_id", ids.Max)
	return ps
}
