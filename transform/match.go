package transform

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// fieldMap maps the fields of pages to columns.
type fieldMap struct {
	// columns maps every source met so far to the index of its column, or to ^i for the ignored
	// field i.
	columns map[schemas.Source]int32
	ignored []ignoredField
	labels  map[schemas.Source]heading
	at      []int32 // for each field of the current page, what columns holds for it
}

// heading is the first label of a field, and its place among all labels.
type heading struct {
	label string
	place int
}

type ignoredField struct {
	from    schemas.Source
	n       int64
	dropped bool // a pii rule drops the field's column, so the field is not counted
}

// ignore adds an ignored field and returns the field's value for fieldMap.columns.
func (m *fieldMap) ignore(from schemas.Source, dropped bool) int32 {
	at := ^int32(len(m.ignored))
	m.columns[from] = at
	m.ignored = append(m.ignored, ignoredField{from: from, dropped: dropped})
	return at
}

// source returns the source that columns have for a page's field.
func source(x page.Field) schemas.Source {
	kinds := [...]schemas.SourceKind{page.KindMeta: schemas.FromMeta, page.KindItem: schemas.FromItem, page.KindOther: schemas.FromOther}
	return schemas.Source{Kind: kinds[x.Kind], ID: x.ID}
}

// nowhere marks a field without a column, which only filtered-out results have.
const nowhere = math.MinInt32

// match finds the column of every field of the page, and applies the rule for
// unknown fields to those that have none.
func (f *Flattener) match() error {
	p := f.row.page
	f.fields.learn(p.Headings)
	f.fields.at = f.fields.at[:0]
	var unknown []int // indices of fields in the page's Fields
	for i, x := range p.Fields {
		at, known := f.fields.columns[source(x)]
		if !known {
			at = nowhere
			unknown = append(unknown, i)
		}
		f.fields.at = append(f.fields.at, at)
	}
	if unknown == nil { // most pages have no unknown field
		return nil
	}
	// A field that only results have which were filtered out does not count as unknown.
	owner := owners(p)
	unknown = slices.DeleteFunc(unknown, func(i int) bool { return owner[i] < 0 })
	if len(unknown) == 0 {
		return nil
	}
	f.fields.order(p.Fields, unknown)
	switch f.given.Unknown {
	case schemas.UnknownFail:
		e := &UnknownFieldError{Column: f.late(p.Fields[unknown[0]]), ResultID: p.ID(owner[unknown[0]])}
		for _, i := range unknown[1:] {
			e.Others = append(e.Others, keep(source(p.Fields[i])))
		}
		return e
	case schemas.UnknownIgnore:
		for _, i := range unknown {
			f.fields.at[i] = f.fields.ignore(keep(source(p.Fields[i])), false)
		}
		return nil
	}
	return f.add(unknown)
}

// add appends a column for each unknown field. unknown holds indices into the page's Fields.
func (f *Flattener) add(unknown []int) error {
	most := f.given.MostColumns()
	if n := len(f.listed) + len(unknown); n > most {
		return &ColumnsError{Columns: n, Max: most}
	}
	if err := f.flush(); err != nil {
		return err
	}
	late := make([]schemas.Column, len(unknown))
	for k, i := range unknown {
		late[k] = f.late(f.row.page.Fields[i])
		f.fields.at[i] = int32(len(f.columns) + k)
	}
	f.extend(schemas.Merge(f.listed, late)[len(f.listed):])
	return nil
}

// late returns the column that a field without one is given.
func (f *Flattener) late(x page.Field) schemas.Column {
	from := keep(source(x))
	return f.given.Late(from, DefaultType(from), f.fields.labels[from.Item()].label, f.o.Naming)
}

// learn keeps the first label of every field of a form. A heading that may belong to a meta or
// an item labels both.
func (m *fieldMap) learn(headings []page.Heading) {
	for _, h := range headings {
		if h.Kind != page.KindItem {
			m.label(schemas.Source{Kind: schemas.FromMeta, ID: h.ID}, h.Label)
		}
		if h.Kind != page.KindMeta {
			m.label(schemas.Source{Kind: schemas.FromItem, ID: h.ID}, h.Label)
		}
	}
}

func (m *fieldMap) label(from schemas.Source, label string) {
	if _, known := m.labels[from]; !known {
		m.labels[keep(from)] = heading{strings.Clone(label), len(m.labels)}
	}
}

// keep returns the source with a copy of its id, so that the id outlives the page.
func keep(s schemas.Source) schemas.Source {
	s.ID = strings.Clone(s.ID)
	return s
}

// owners returns for every field of the page the first result that has it, -1
// for none.
func owners(p *page.Page) []int {
	owner := slices.Repeat([]int{-1}, len(p.Fields))
	for r := range p.Len() {
		for _, c := range p.Cells(r) {
			if owner[c.Field] < 0 {
				owner[c.Field] = r
			}
		}
	}
	return owner
}

// order sorts indices of fields as Infer orders columns: metas before items, known metas
// first, items by their index on the form and then by their headings, typed texts behind their
// items. Equal fields keep their order of occurrence.
func (m *fieldMap) order(fields []page.Field, at []int) {
	slices.SortStableFunc(at, func(a, b int) int {
		x, y := fields[a], fields[b]
		switch {
		case x.Kind == page.KindMeta && y.Kind == page.KindMeta:
			return page.MetaPlace(x.ID) - page.MetaPlace(y.ID)
		case x.Kind == page.KindMeta || y.Kind == page.KindMeta:
			return cmp.Compare(x.Kind, y.Kind)
		}
		return cmp.Or(cmp.Compare(x.Index, y.Index), cmp.Compare(m.place(x), m.place(y)), cmp.Compare(x.Kind, y.Kind))
	})
}

// place returns the place of a field's heading among all headings. Fields without a heading
// come last.
func (m *fieldMap) place(x page.Field) int {
	if h, ok := m.labels[source(x).Item()]; ok {
		return h.place
	}
	return len(m.labels)
}
