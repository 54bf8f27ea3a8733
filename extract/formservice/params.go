package formservice

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice/internal/query"
)

const (
	keyParameter = "fs_api_key"
	sortByID     = "result_id"
	maxPerPage   = 100
)

// resultsQuery is what a request for results, or for their count, asks for.
type resultsQuery struct {
	selection
	limit, page int
	sort        string // a column, or sortByID
	where       []func(Result) bool
	any         bool // one condition is enough
	view        View
	headings    bool
	labels      map[string]string
	lack        int                 // Faults.LackUpdate
	twice       func(id int64) bool // a result that is sent comes once more
	most        int                 // Faults.CutPages
	unsorted    bool
	shownAs     *shownAs // nil: values are shown, and sorted, as they are stored
}

// newResultsQuery holds the defaults of section 4.5.
func newResultsQuery() resultsQuery {
	s := everything
	s.desc = true
	return resultsQuery{selection: s, limit: maxPerPage, page: 1, sort: sortByID, view: View{ID: AllData}, twice: Faults{}.twice}
}

// refuse is a bad value of a parameter: error 2.
func refuse(p query.Pair, want string) error {
	return &refusal{code: codeInvalidValue, message: fmt.Sprintf("%s: %q is not %s", p.Name, p.Value, want)}
}

// bound reads the four parameters that Get Results and Get Results Count
// share. known is false for any other.
func (q *resultsQuery) bound(p query.Pair, faults Faults) (known bool, err error) {
	switch p.Name {
	case "fs_min_date":
		at, err := dateBound(p, 0)
		q.after, q.dated = at-1, true
		return true, err
	case "fs_max_date":
		rest := int64(daySize - 1)
		if faults.BareMaxMidnight {
			rest = 0
		}
		at, err := dateBound(p, rest)
		q.before, q.dated = at+1, true
		return true, err
	case "fs_min_id":
		return true, idBound(p, &q.minID)
	case "fs_max_id":
		return true, idBound(p, &q.maxID)
	}
	return false, nil
}

// dateBound reads YYYY-MM-DD[ HH:MM:SS]; rest is added to a date without a time.
func dateBound(p query.Pair, rest int64) (int64, error) {
	layout := WallTime
	if len(p.Value) == len(time.DateOnly) {
		layout = time.DateOnly
	} else {
		rest = 0
	}
	t, err := time.Parse(layout, p.Value)
	if err != nil || len(p.Value) != len(layout) {
		return 0, refuse(p, "a date like 2026-01-31 or 2026-01-31 23:59:59")
	}
	return t.Unix() + rest, nil
}

func idBound(p query.Pair, to *int64) error {
	id, ok := query.Digits(p.Value, math.MaxInt64)
	if !ok {
		return &refusal{code: codeInvalidID, message: fmt.Sprintf("%s: %q is not a result id", p.Name, p.Value)}
	}
	*to = id
	return nil
}

// results reads the parameters of Get Results.
func (f *Form) results(pairs []query.Pair, faults Faults, loose bool) (resultsQuery, error) {
	q := newResultsQuery()
	for _, p := range pairs {
		known, err := q.bound(p, faults)
		if !known && err == nil {
			known, err = q.shape(p, faults)
		}
		if !known && err == nil {
			known, err = q.output(p, f)
		}
		if !known && err == nil {
			known, err = q.search(p, f)
		}
		if err != nil {
			return q, err
		}
		if !known && !loose {
			return q, unknown(p)
		}
	}
	if q.sort != sortByID && !f.hasColumn(q.sort) {
		return q, refuse(query.Pair{Name: "fs_sort", Value: q.sort}, "a meta or an item of this form")
	}
	return q, nil
}

func unknown(p query.Pair) error {
	return &refusal{code: codeInvalidValue, message: p.Name + " is not a parameter of this transaction"}
}

// counted reads the parameters of Get Results Count.
func (f *Form) counted(pairs []query.Pair, faults Faults, loose bool) (resultsQuery, error) {
	q := newResultsQuery()
	for _, p := range pairs {
		known, err := q.bound(p, faults)
		if err != nil {
			return q, err
		}
		if !known && !loose {
			return q, unknown(p)
		}
	}
	return q, nil
}

// shape reads which page is wanted, and in which order.
func (q *resultsQuery) shape(p query.Pair, faults Faults) (known bool, err error) {
	switch p.Name {
	case "fs_limit":
		most := int64(maxPerPage)
		if faults.StrictLimit {
			most--
		}
		n, ok := query.Digits(p.Value, most)
		if !ok || n < 1 {
			return true, refuse(p, fmt.Sprintf("a number from 1 to %d", most))
		}
		q.limit = int(n)
	case "fs_page":
		n, ok := query.Digits(p.Value, math.MaxInt32)
		if !ok || n < 1 {
			return true, refuse(p, "a page number")
		}
		q.page = int(n)
	case "fs_sort":
		q.sort = p.Value
	case "fs_sort_direction":
		if p.Value != "asc" && p.Value != "desc" {
			return true, refuse(p, "asc or desc")
		}
		q.desc = p.Value == "desc"
	default:
		return false, nil
	}
	return true, nil
}

// output reads which columns are wanted, under which names.
func (q *resultsQuery) output(p query.Pair, f *Form) (known bool, err error) {
	var ok bool
	switch p.Name {
	case "fs_view":
		if q.view, ok = f.view(p.Value); !ok {
			return true, refuse(p, "a view of this form")
		}
	case "fs_custom_labels":
		if q.labels, ok = f.Labels[p.Value]; !ok {
			return true, refuse(p, "a set of custom labels of this form")
		}
	case "fs_include_headings":
		q.headings = true
	default:
		return false, nil
	}
	return true, nil
}

// search reads fs_search_method and the six search parameters.
func (q *resultsQuery) search(p query.Pair, f *Form) (known bool, err error) {
	rest, ok := strings.CutPrefix(p.Name, "fs_search_")
	if !ok {
		return false, nil
	}
	if rest == "method" {
		if p.Value != "and" && p.Value != "or" {
			return true, refuse(p, "and or or")
		}
		q.any = p.Value == "or"
		return true, nil
	}
	for _, op := range operators() {
		column, ok := strings.CutPrefix(rest, string(op)+"_")
		if !ok {
			continue
		}
		if !f.hasColumn(column) {
			return true, refuse(query.Pair{Name: p.Name, Value: column}, "a meta or an item of this form")
		}
		q.where = append(q.where, Condition{Column: column, Operator: op, Term: p.Value}.Holds)
		return true, nil
	}
	return false, nil
}
