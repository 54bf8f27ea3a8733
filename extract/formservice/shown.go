package formservice

import (
	"math"

	"github.com/formetl/formetl/extract/formservice/internal/jsonapi"
)

// shown describes a form for API v2. The caller holds its lock while the
// description is used.
func (f *Form) shown(service *jsonapi.Service, faults Faults) *jsonapi.Form {
	items := make([]jsonapi.Item, len(f.Items))
	for i, it := range f.Items {
		items[i] = shownItem(it)
	}
	return &jsonapi.Form{
		Directory: f.Directory, Name: f.Name, Description: f.Description, Closed: f.Closed,
		Results: f.stored.count(everything), Items: items, Groups: f.Groups, Labels: f.Labels,
		View:    func(id string) ([]string, bool) { v, ok := f.view(id); return v.Columns, ok },
		Has:     f.hasColumn,
		IsItem:  f.hasItem,
		Choices: func(item string) []string { return f.stored.choices[item] },
		Read:    func(sel jsonapi.Selection) jsonapi.Page { return f.page(sel, service.Clock, faults) },
	}
}

func shownItem(it Item) jsonapi.Item {
	return jsonapi.Item{ID: it.ID, Type: it.Type, Label: it.Label, Position: it.Index, Choices: it.Choices}
}

// hasItem tells whether id is an item of the form or its results.
func (f *Form) hasItem(id string) bool {
	_, ok := f.item(id)
	return ok || f.stored.seen[id]
}

// shownAs is how a request of API v2 sees dates and values.
type shownAs struct {
	clock jsonapi.Clock
	value func(jsonapi.Result) string // of the column that is sorted by
	own   converter
}

// converter turns results into those of API v2. A result is valid until the
// next one.
type converter struct{ r jsonapi.Result }

func (c *converter) convert(r Result) jsonapi.Result {
	c.r.ID, c.r.Metas, c.r.Items = r.ID, c.r.Metas[:0], c.r.Items[:0]
	for _, m := range r.Metas {
		c.r.Metas = append(c.r.Metas, jsonapi.Meta(m))
	}
	for _, a := range r.Items {
		c.r.Items = append(c.r.Items, jsonapi.Answer{ID: a.ID, Type: a.Type, Position: a.Index, Values: a.Values})
	}
	return c.r
}

// page reads what a request of API v2 selects.
func (f *Form) page(sel jsonapi.Selection, clock jsonapi.Clock, faults Faults) jsonapi.Page {
	q := f.selected(sel, clock)
	faults.bend(&q)
	return jsonapi.Page{
		Total: faults.told(f.total(&q), f), Number: q.page, Limit: q.limit,
		Each: func(yield func(jsonapi.Result)) {
			var s scratch
			var c converter
			f.pick(&q, &s, func(r Result) { yield(c.convert(r)) })
		},
	}
}

// total is the number of results of all pages.
func (f *Form) total(q *resultsQuery) int {
	if !q.filters() {
		return f.stored.count(q.selection)
	}
	n := 0
	var s scratch
	f.stored.walk(q.selection, 0, func(id int64) bool {
		if r, _ := q.load(f, id, &s); q.accepts(r) {
			n++
		}
		return true
	})
	return n
}

// selected makes a query of a selection.
func (f *Form) selected(sel jsonapi.Selection, clock jsonapi.Clock) resultsQuery {
	q := newResultsQuery()
	q.minID, q.maxID, q.desc = sel.AfterID+1, sel.BeforeID-1, sel.Desc
	q.page, q.limit, q.any = sel.Page, sel.Limit, sel.Any
	q.shownAs = &shownAs{clock: clock, value: sel.Value}
	if sel.Sort != "" {
		q.sort = sel.Sort
	}
	if sel.View != "" {
		q.view, _ = f.view(sel.View)
	}
	for _, holds := range sel.Where {
		var c converter
		q.where = append(q.where, func(r Result) bool { return holds(c.convert(r)) })
	}
	q.between(sel.After, sel.Before, clock)
	return q
}

// exactDates are the bounds of a selection as instants. Dates that lie within
// the selection by its slacks lie between them.
type exactDates struct {
	after, before      int64 // exclusive
	fromSlack, toSlack int64
	clock              jsonapi.Clock
}

func (e *exactDates) within(id, wall int64) bool {
	at := e.clock.Compared(id, wall)
	return e.after < at && at < e.before
}

// open takes bounds away; nil has none.
func (e *exactDates) open(after, before bool) {
	if e != nil && after {
		e.after = jsonapi.NoAfter
	}
	if e != nil && before {
		e.before = jsonapi.NoBefore
	}
}

// between sets the date bounds. The wall clock of an instant is near to the
// dates of the results there: from and to lie outside by the slack.
func (q *resultsQuery) between(after, before int64, clock jsonapi.Clock) {
	e := &exactDates{after: after, before: before, clock: clock}
	if after != jsonapi.NoAfter {
		wall, slack := clock.Wall(after)
		q.from, e.fromSlack = wall-slack, 2*slack
	}
	if before != jsonapi.NoBefore {
		wall, slack := clock.Wall(before)
		q.to, e.toSlack = wall+slack, 2*slack
	}
	q.dated = after != jsonapi.NoAfter || before != jsonapi.NoBefore
	q.exact = e
}

// moment is a date as the request orders dates: that of the wall clock or, for
// API v2, the instant.
func (q *resultsQuery) moment(id, wall int64) int64 {
	if q.shownAs == nil || wall == never {
		return wall
	}
	return q.shownAs.clock.Instant(id, wall)
}

// wall is the wall clock of a moment, exact up to slack seconds.
func (q *resultsQuery) wall(moment int64) (wall, slack int64) {
	if q.shownAs == nil {
		return moment, 0
	}
	if moment == never {
		return math.MinInt64 / 2, 0
	}
	return q.shownAs.clock.Wall(moment)
}

// momentText is a moment as answers show it, never as "".
func (q *resultsQuery) momentText(moment int64, s *scratch) string {
	if q.shownAs == nil || moment == never {
		return s.dateOrNone(moment)
	}
	return q.shownAs.clock.Text(moment)
}

// sortValue is what a result is sorted by.
func (q *resultsQuery) sortValue(r Result) string {
	if q.shownAs == nil || q.shownAs.value == nil {
		return firstValue(r, q.sort)
	}
	return q.shownAs.value(q.shownAs.own.convert(r))
}
