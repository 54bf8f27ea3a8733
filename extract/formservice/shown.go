package formservice

import (
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
		Results: len(f.stored.records), Items: items, Groups: f.Groups, Labels: f.Labels,
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

// shownAs is how a request of API v2 sees values.
type shownAs struct {
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
		Total: faults.told(f.count(&q), f), Number: q.page, Limit: q.limit,
		Each: func(yield func(jsonapi.Result)) {
			var c converter
			f.pick(&q, func(r Result) { yield(c.convert(r)) })
		},
	}
}

// selected makes a query of a selection.
func (f *Form) selected(sel jsonapi.Selection, clock jsonapi.Clock) resultsQuery {
	q := newResultsQuery()
	q.minID, q.maxID, q.desc = sel.AfterID+1, sel.BeforeID-1, sel.Desc
	q.page, q.limit, q.any = sel.Page, sel.Limit, sel.Any
	q.shownAs = &shownAs{value: sel.Value}
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
	q.after, q.before, q.moment = sel.After, sel.Before, clock.Compared
	q.dated = sel.After != jsonapi.NoAfter || sel.Before != jsonapi.NoBefore
	return q
}
