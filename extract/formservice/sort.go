package formservice

import (
	"cmp"
	"iter"
	"slices"
)

// ordered iterates over the records that the request selects, in its order:
// by the value that it sorts by, then by id.
func (f *Form) ordered(q *resultsQuery) iter.Seq[record] {
	accepted := func(yield func(record) bool) {
		for r := range f.stored.selected(q.selection) {
			if (!q.filters() || q.accepts(q.read(f, r))) && !yield(r) {
				return
			}
		}
	}
	if q.sort == sortByID {
		return accepted
	}
	return func(yield func(record) bool) {
		type keyed struct {
			value string
			record
		}
		var all []keyed
		for r := range accepted {
			all = append(all, keyed{q.sortValue(f, r), r})
		}
		slices.SortFunc(all, func(a, b keyed) int {
			order := cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.id, b.id))
			if q.desc {
				return -order
			}
			return order
		})
		for _, k := range all {
			if !yield(k.record) {
				return
			}
		}
	}
}

// read returns a result as the request shows it.
func (q *resultsQuery) read(f *Form, rec record) Result {
	r := f.stored.result(rec)
	if q.lacks(r.ID) {
		r.Metas = slices.DeleteFunc(slices.Clone(r.Metas), func(m Meta) bool { return m.ID == metaUpdate })
	}
	return r
}

// lacks tells whether the result of that id is shown without its date_update.
func (q *resultsQuery) lacks(id int64) bool { return q.lack > 0 && id%int64(q.lack) == 0 }

// sortValue is what a result is sorted by. Clients sort by date_update the
// whole form: of generated results nothing else is computed.
func (q *resultsQuery) sortValue(f *Form, rec record) string {
	var r Result
	if q.sort == metaUpdate && rec.result == nil {
		r.ID = rec.id
		if at := f.stored.generated.updated(f.stored.generated.number(rec.id)); at != never && !q.lacks(rec.id) {
			r.Metas = []Meta{{metaUpdate, wallText(at)}}
		}
	} else {
		r = q.read(f, rec)
	}
	if q.value != nil {
		return q.value(r)
	}
	return firstValue(r, q.sort)
}

// firstValue is the first value of a column, "" where there is none.
func firstValue(r Result, column string) string {
	if v, ok := r.Meta(column); ok {
		return v
	}
	for _, a := range r.Items {
		if a.ID == column && len(a.Values) > 0 {
			return a.Values[0]
		}
	}
	return ""
}
