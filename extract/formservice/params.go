package formservice

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	sortByID   = "result_id"
	maxPerPage = 100
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
	lack        int                 // the fault lack-update
	twice       func(id int64) bool // a result that is sent comes once more
	most        int                 // the fault cut-pages
	unsorted    bool
	value       func(Result) string // what results are sorted by; nil: the column's first value
}

// newResultsQuery holds the defaults of section 4.5.
func newResultsQuery() resultsQuery {
	s := everything
	s.desc = true
	return resultsQuery{selection: s, limit: maxPerPage, page: 1, sort: sortByID, view: View{ID: AllData}, twice: func(int64) bool { return false }}
}

// common reads a parameter that both generations have, by its name in v1 without fs_. most is
// the highest limit, and clamp lowers one that is too high.
func (c *call) common(q *resultsQuery, name string, p pair, most int, clamp bool) (known bool, no *refusal) {
	if c.faults.on("strict-limit") {
		most--
	}
	switch name {
	case "limit":
		n, ok := digits(p.value, math.MaxInt32)
		if !ok || n < 1 || int(n) > most && !clamp {
			return true, refuse(p, fmt.Sprintf("a number from 1 to %d", most))
		}
		q.limit = min(int(n), most)
	case "page":
		n, ok := digits(p.value, math.MaxInt32)
		if !ok || n < 1 {
			return true, refuse(p, "a page number")
		}
		q.page = int(n)
	case "sort_direction":
		if p.value != "asc" && p.value != "desc" {
			return true, refuse(p, "asc or desc")
		}
		q.desc = p.value == "desc"
	case "sort":
		if q.sort = p.value; c.api == V2 && p.value == byID {
			q.sort = sortByID
		}
		if q.sort != sortByID && !c.form.hasColumn(q.sort) {
			return true, refuse(p, "a meta or an item of this form")
		}
	case "view":
		if q.view, known = c.form.view(p.value); !known {
			return true, refuse(p, "a view of this form")
		}
	case "search_method":
		if p.value != "and" && p.value != "or" {
			return true, refuse(p, "and or or")
		}
		q.any = p.value == "or"
	default:
		return false, nil
	}
	return true, nil
}

// parameter reads a parameter into a query. known is false for one that it does not know.
type parameter func(q *resultsQuery, p pair) (known bool, no *refusal)

// read reads all parameters, each by the first that knows it.
func (c *call) read(q *resultsQuery, by ...parameter) *refusal {
	for _, p := range c.pairs {
		known := false
		for i := 0; i < len(by) && !known; i++ {
			var no *refusal
			if known, no = by[i](q, p); no != nil {
				return no
			}
		}
		if !known {
			return c.unknown(p)
		}
	}
	return nil
}

// asked reads the parameters of Get Results or Get Results Count.
func (c *xmlCall) asked() (q resultsQuery, no *refusal) {
	q = newResultsQuery()
	by := []parameter{c.bound}
	if c.transaction == TransactionResults {
		by = append(by, c.shape, c.search)
	}
	no = c.read(&q, by...)
	return q, no
}

// bound reads the four bounds.
func (c *xmlCall) bound(q *resultsQuery, p pair) (known bool, no *refusal) {
	switch p.name {
	case "fs_min_date":
		q.after, no = dateBound(p, 0)
		q.after--
		q.dated = true
	case "fs_max_date":
		rest := int64(daySize - 1)
		if c.faults.on("bare-max-midnight") {
			rest = 0
		}
		q.before, no = dateBound(p, rest)
		q.before++
		q.dated = true
	case "fs_min_id":
		q.minID, no = idBound(p)
	case "fs_max_id":
		q.maxID, no = idBound(p)
	default:
		return false, nil
	}
	return true, no
}

// dateBound reads YYYY-MM-DD[ HH:MM:SS]; rest is added to a date without a time.
func dateBound(p pair, rest int64) (int64, *refusal) {
	layout := WallTime
	if len(p.value) == len(time.DateOnly) {
		layout = time.DateOnly
	} else {
		rest = 0
	}
	t, err := time.Parse(layout, p.value)
	if err != nil || len(p.value) != len(layout) {
		return 0, refuse(p, "a date like 2026-01-31 or 2026-01-31 23:59:59")
	}
	return t.Unix() + rest, nil
}

func idBound(p pair) (int64, *refusal) {
	id, ok := digits(p.value, math.MaxInt64)
	if !ok {
		return 0, &refusal{code: codeInvalidID, message: fmt.Sprintf("%s: %q is not a result id", p.name, p.value)}
	}
	return id, nil
}

// shape reads which page of which results is wanted, and how it is to look.
func (c *xmlCall) shape(q *resultsQuery, p pair) (known bool, no *refusal) {
	name, ok := strings.CutPrefix(p.name, "fs_")
	if !ok {
		return false, nil
	}
	if known, no := c.common(q, name, p, maxPerPage, false); known {
		return true, no
	}
	switch name {
	case "custom_labels":
		if q.labels, ok = c.form.Labels[p.value]; !ok {
			return true, refuse(p, "a set of custom labels of this form")
		}
	case "include_headings":
		q.headings = true
	default:
		return false, nil
	}
	return true, nil
}

// search reads the six search parameters.
func (c *xmlCall) search(q *resultsQuery, p pair) (known bool, no *refusal) {
	for _, op := range operators() {
		column, ok := strings.CutPrefix(p.name, "fs_search_"+string(op)+"_")
		if !ok {
			continue
		}
		if !c.form.hasColumn(column) {
			return true, refuse(pair{p.name, column}, "a meta or an item of this form")
		}
		q.where = append(q.where, Condition{Column: column, Operator: op, Term: p.value}.Holds)
		return true, nil
	}
	return false, nil
}
