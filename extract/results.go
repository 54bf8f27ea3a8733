package extract

import (
	"context"
	"net/http"
	"strconv"
)

// ResultsQuery holds every parameter of Get Results (specification, section
// 4.5). The zero value asks for the first page of everything.
type ResultsQuery struct {
	Window       Window // fs_min_date and fs_max_date, always with a time part
	IDs          IDRange
	Limit        int    // fs_limit; 0, and 100 or more, leave it out: full pages
	Page         int    // fs_page; 0 leaves it out: the first
	Sort         string // fs_sort: a meta or item id; "" is the result id
	Descending   bool   // fs_sort_direction
	Search       Search
	View         string // fs_view
	Headings     bool   // fs_include_headings
	CustomLabels string // fs_custom_labels
}

// IDRange bounds result ids at both ends, inclusively. Zero is no bound: ids
// of results begin at 1.
type IDRange struct{ Min, Max int64 }

// holds tells whether an id lies in the range.
func (r IDRange) holds(id int64) bool { return id >= r.Min && (r.Max == 0 || id <= r.Max) }

// CountQuery holds the parameters of Get Results Count (specification,
// section 4.6).
type CountQuery struct {
	Window Window
	IDs    IDRange
}

// Results asks for one page of results and decodes it whole. The page is the
// caller's to release.
func (c *Client) Results(ctx context.Context, form string, q ResultsQuery) (*Page, error) {
	if err := q.Search.check(); err != nil {
		return nil, err
	}
	page := NewPage()
	err := c.roundTrip(ctx, call{
		method: http.MethodGet, transaction: getResults, form: form, path: "results", parameters: q.parameters(),
	}, pageReceiver{page, c.bounds, c.usual})
	if err != nil {
		page.Release()
		return nil, err
	}
	return page, nil
}

// Count asks how many results match.
func (c *Client) Count(ctx context.Context, form string, q CountQuery) (int64, error) {
	var count int64
	err := c.roundTrip(ctx, call{
		method: http.MethodGet, transaction: getCount, form: form, path: "results/count",
		parameters: constrain(nil, q.Window, q.IDs),
	}, c.receive(func(root *node) error {
		n, err := payload(root, "count")
		if err == nil {
			count, err = number(n.Text, "count")
		}
		return err
	}))
	return count, err
}

func (q ResultsQuery) parameters() []parameter {
	ps := constrain(nil, q.Window, q.IDs)
	// "a number less than 100" with a default of 100: a strict service refuses
	// the hundred that it gives when nothing is said (specification, section 8).
	if q.Limit > 0 && q.Limit < pageSize {
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
	ps = append(ps, q.Search.parameters()...)
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

func (s Search) parameters() []parameter {
	ps := make([]parameter, 0, len(s.Where)+1)
	for _, c := range s.Where {
		presence := c.Operator == OpEmpty || c.Operator == OpNotEmpty
		ps = append(ps, parameter{name: "fs_search_" + string(c.Operator) + "_" + c.Column, value: c.Term, bare: presence})
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

// constrain adds the bounds that results and counts share. The wire's bounds
// are inclusive, so a window's exclusive end is sent a second earlier.
func constrain(ps []parameter, w Window, ids IDRange) []parameter {
	if !w.From.IsZero() {
		ps = append(ps, parameter{name: "fs_min_date", value: w.From.Format(WireTime)})
	}
	if !w.To.IsZero() {
		ps = append(ps, parameter{name: "fs_max_date", value: w.To.Add(-second).Format(WireTime)})
	}
	if ids.Min > 0 {
		ps = append(ps, parameter{name: "fs_min_id", value: strconv.FormatInt(ids.Min, 10)})
	}
	if ids.Max > 0 {
		ps = append(ps, parameter{name: "fs_max_id", value: strconv.FormatInt(ids.Max, 10)})
	}
	return ps
}
