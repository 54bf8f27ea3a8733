package transform

import (
	"math"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// source is the column source of a page's field.
func source(x page.Field) schemas.Source {
	if x.Kind == page.KindMeta {
		return schemas.Source{Kind: schemas.FromMeta, ID: x.ID}
	}
	return schemas.Source{Kind: schemas.FromItem, ID: x.ID}
}

// nowhere is the column of a field that no result of the page has.
const nowhere = math.MinInt32

// match finds the column of every field of the page, and applies the rule for
// unknown fields to those that have none.
func (f *Flattener) match() error {
	p := f.page
	f.learn(p.Headings)
	f.at = f.at[:0]
	var unknown []int // indices into p.Fields
	for i, x := range p.Fields {
		at, known := f.fields[source(x)]
		if !known {
			at = nowhere
			unknown = append(unknown, i)
		}
		f.at = append(f.at, at)
	}
	if unknown == nil {
		return nil
	}
	// A field counts once a result has it: those of filtered results do not.
	owner := owners(p)
	unknown = slices.DeleteFunc(unknown, func(i int) bool { return owner[i] < 0 })
	if len(unknown) == 0 {
		return nil
	}
	order(p.Fields, unknown)
	switch f.unknown {
	case schemas.UnknownFail:
		from := source(p.Fields[unknown[0]])
		e := &UnknownFieldError{From: keep(from), Label: f.labels[from], ResultID: p.ID(owner[unknown[0]])}
		for _, i := range unknown[1:] {
			e.Others = append(e.Others, keep(source(p.Fields[i])))
		}
		return e
	case schemas.UnknownIgnore:
		for _, i := range unknown {
			from := keep(source(p.Fields[i]))
			f.at[i] = ^int32(len(f.ignored))
			f.fields[from] = f.at[i]
			f.ignored = append(f.ignored, ignoredField{from: from})
		}
		return nil
	}
	return f.add(unknown)
}

// add appends a column for each of the page's fields.
func (f *Flattener) add(unknown []int) error {
	if n := len(f.listed) + len(unknown); n > f.most {
		return &ColumnsError{Columns: n, Max: f.most}
	}
	if err := f.flush(); err != nil {
		return err
	}
	late := make([]schemas.Column, len(unknown))
	for k, i := range unknown {
		from := keep(source(f.page.Fields[i]))
		late[k] = schemas.Late(from, f.labels[from], f.o.Labels)
		f.at[i] = int32(len(f.columns) + k)
	}
	f.extend(schemas.Merge(f.listed, late)[len(f.listed):])
	return nil
}

// learn keeps the first label of every heading, under both kinds where the
// answer does not tell which it is about.
func (f *Flattener) learn(headings []page.Heading) {
	for _, h := range headings {
		if h.Kind != page.KindItem {
			f.label(schemas.Source{Kind: schemas.FromMeta, ID: h.ID}, h.Label)
		}
		if h.Kind != page.KindMeta {
			f.label(schemas.Source{Kind: schemas.FromItem, ID: h.ID}, h.Label)
		}
	}
}

func (f *Flattener) label(from schemas.Source, label string) {
	if _, known := f.labels[from]; !known {
		f.labels[keep(from)] = strings.Clone(label)
	}
}

// keep returns the source with an id of its own, for use beyond the page.
func keep(s schemas.Source) schemas.Source {
	s.ID = strings.Clone(s.ID)
	return s
}

// owners returns for every field of the page the first result that has it, -1
// for none.
func owners(p *page.Page) []int {
	owner := make([]int, len(p.Fields))
	for i := range owner {
		owner[i] = -1
	}
	for r := range p.Len() {
		for _, c := range p.Cells(r) {
			if owner[c.Field] < 0 {
				owner[c.Field] = r
			}
		}
	}
	return owner
}

// order sorts indices of fields: metas before items, items by their index on
// the form, equals in order of occurrence.
func order(fields []page.Field, at []int) {
	slices.SortStableFunc(at, func(a, b int) int {
		x, y := fields[a], fields[b]
		if x.Kind != y.Kind {
			return int(x.Kind) - int(y.Kind)
		}
		if x.Kind == page.KindItem && x.Index != y.Index {
			return x.Index - y.Index
		}
		return a - b
	})
}
