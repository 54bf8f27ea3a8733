package transform

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// Infer makes the schema that a data set has without a schema file, from the
// headings and a sample of pages. Its columns are result_id, every meta, and
// every item by its index. Known metas come first, in the order of page.MetaPlace. Items
// of one index, such as the rows of a matrix, have the order of their headings. Types are
// those of DefaultType. Items that hold several values in any sampled result are
// list<string>. A column of typed texts follows the item beside whose choices somebody typed.
// Fields that occur only in headings have columns too, each after the field of an earlier
// heading. The schema is named by the form. naming says what items are named after.
//
// Pages must be in the order of the range. If an item has moved on the form, its
// index in the last page counts. If it was relabelled, its first heading counts.
func Infer(form string, pages []*page.Page, naming schemas.Naming) *schemas.Schema {
	var s sample
	for _, p := range pages {
		s.page(p)
	}
	for _, p := range pages {
		s.addHeadings(p.Headings)
	}
	return s.schema(form, naming)
}

// sample collects what pages show about the fields of a form.
type sample struct {
	fields   []*sampled // fields in order of occurrence; fields of results come first
	at       map[schemas.Source]*sampled
	results  int
	headings int // number of headings added
	idLabel  string
	clock    *clock // reads wall-clock times; nil: no value is looked at
}

// sampled collects what a sample shows about one field.
type sampled struct {
	from     schemas.Source
	label    string
	itemType string
	index    int // the field's place on the form; 0: not known
	heading  int // the field's place among the headings, from 1; 0: none

	answers bool // some result has the field
	filled  int  // number of results with a value that is not empty
	empty   int  // number of values that are empty
	several int  // number of results with several values
	shapes  shapes
	seen    Seen // its choices, if it has typed texts

	values int32 // number of values of the field in the current result
	full   bool  // a value of the current result is not empty
}

// field returns the sample's entry for a source. It makes the entry if there is none.
func (s *sample) field(from schemas.Source) *sampled {
	f := s.at[from]
	if f == nil {
		f = &sampled{from: keep(from)}
		if s.at == nil {
			s.at = map[schemas.Source]*sampled{}
		}
		s.at[f.from] = f
		s.fields = append(s.fields, f)
	}
	return f
}

// page adds the results of a page to the sample.
func (s *sample) page(p *page.Page) {
	p.Part(page.Others{})
	fields := make([]*sampled, len(p.Fields))
	for i, owner := range owners(p) {
		if owner < 0 {
			continue // all results with the field were filtered out of the page
		}
		x := p.Fields[i]
		f := s.field(source(x))
		fields[i], f.answers = f, true
		if x.Index > 0 {
			f.index = x.Index
		}
		if x.Type != "" && x.Type != f.itemType {
			f.itemType = strings.Clone(x.Type)
		}
	}
	for r := range p.Len() {
		s.result(p, p.Cells(r), fields)
	}
	s.results += p.Len()
}

// result adds the cells of one result to the sample. fields holds the sample's entries of the
// page's fields.
func (s *sample) result(p *page.Page, cells []page.Cell, fields []*sampled) {
	for _, c := range cells {
		f := fields[c.Field]
		f.values += c.Values
		if s.clock == nil {
			continue
		}
		for i := range int(c.Values) {
			v := p.Value(c, i)
			if len(v) == 0 {
				f.empty++
				continue
			}
			f.full = true
			f.shapes.add(v, s.clock)
			f.seen.choose(string(v), 1, nil)
		}
	}
	for _, c := range cells { // several cells of one field count once
		f := fields[c.Field]
		if f.values > 1 {
			f.several++
		}
		if f.full {
			f.filled++
		}
		f.values, f.full = 0, false
	}
}

// addHeadings adds labels, and fields that no result has. Call it after all
// pages were added.
func (s *sample) addHeadings(headings []page.Heading) {
	for _, h := range headings {
		s.headings++
		about := s.meanings(h)
		if about == nil && s.idLabel == "" {
			s.idLabel = strings.Clone(h.Label)
		}
		for _, from := range about {
			if f := s.field(from); f.heading == 0 {
				f.heading, f.label = s.headings, strings.Clone(h.Label)
			}
		}
	}
}

// schema makes the schema of the sample. form and naming are as in Infer.
func (s *sample) schema(form string, naming schemas.Naming) *schemas.Schema {
	id := schemas.Source{Kind: schemas.FromResultID}
	columns := slices.Concat(
		[]schemas.Column{{From: id, Type: DefaultType(id), Label: s.idLabel}},
		s.columns(schemas.FromMeta), s.columns(schemas.FromItem))
	var unique schemas.Uniquer
	for i, c := range columns {
		columns[i].Inferred = true
		columns[i].Name = unique.Name(schemas.DefaultName(c.From, c.Label, naming))
	}
	out := &schemas.Schema{
		Name: form, Columns: columns, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep,
	}
	out.AddTyped(naming, func(c schemas.Column) bool { return s.at[c.Typed(naming).From] != nil })
	return out
}

// meanings returns the fields that a heading labels. The element around the
// heading may say whether that is a meta or an item. Else the heading labels
// the fields with its id that results have, also both a meta and an item. If
// results have none, it labels a meta with a known id, or an item. meanings
// returns nil for a heading of the result id, "result_id" or "id".
func (s *sample) meanings(h page.Heading) []schemas.Source {
	meta := schemas.Source{Kind: schemas.FromMeta, ID: h.ID}
	item := schemas.Source{Kind: schemas.FromItem, ID: h.ID}
	var about []schemas.Source
	if _, is := s.at[meta]; is && h.Kind != page.KindItem {
		about = append(about, meta)
	}
	if _, is := s.at[item]; is && h.Kind != page.KindMeta {
		about = append(about, item)
	}
	switch {
	case about != nil:
		return about
	case h.ID == "result_id" || h.ID == "id":
		return nil
	case h.Kind == page.KindMeta || h.Kind == 0 && (page.KnownMeta(h.ID) || page.IsDate(h.ID)):
		return []schemas.Source{meta}
	}
	return []schemas.Source{item}
}

// columns returns the inferred columns of one kind of source, metas or items, in the order of
// the form. The columns get their names later.
func (s *sample) columns(kind schemas.SourceKind) []schemas.Column {
	var placed, rest []*sampled
	for _, f := range s.fields {
		switch {
		case f.from.Kind != kind:
		case f.answers && (f.index > 0 || f.heading == 0 || kind == schemas.FromMeta):
			placed = append(placed, f)
		default:
			rest = append(rest, f)
		}
	}
	if kind == schemas.FromItem {
		place := func(n int) int { return cmp.Or(n, math.MaxInt) } // items without an index come last
		slices.SortStableFunc(placed, func(a, b *sampled) int {
			return cmp.Or(cmp.Compare(place(a.index), place(b.index)), cmp.Compare(place(a.heading), place(b.heading)))
		})
	}
	slices.SortStableFunc(rest, func(a, b *sampled) int { return a.heading - b.heading })
	placed = insert(placed, rest)
	if kind == schemas.FromMeta {
		slices.SortStableFunc(placed, func(a, b *sampled) int { return page.MetaPlace(a.from.ID) - page.MetaPlace(b.from.ID) })
	}
	columns := make([]schemas.Column, len(placed))
	for i, f := range placed {
		t := DefaultType(f.from)
		if f.several > 0 && kind == schemas.FromItem {
			t = schemas.ListOf(t)
		}
		columns[i] = schemas.Column{From: f.from, Type: t, Label: f.label}
	}
	return columns
}

// insert returns placed with the fields rest inserted, which are in the order
// of the headings. Each goes after the field in placed or rest that has the
// nearest earlier heading. Fields without an earlier heading come first.
func insert(placed, rest []*sampled) []*sampled {
	var byHeading []int // indices into placed of fields with a heading
	for i, f := range placed {
		if f.heading > 0 {
			byHeading = append(byHeading, i)
		}
	}
	slices.SortStableFunc(byHeading, func(a, b int) int { return placed[a].heading - placed[b].heading })
	behind := make([][]*sampled, len(placed)+1) // [0]: before all, [i+1]: after placed[i]
	at, nearest := 0, 0
	for _, f := range rest {
		for len(byHeading) > 0 && placed[byHeading[0]].heading < f.heading {
			if h := placed[byHeading[0]].heading; h > nearest {
				at, nearest = byHeading[0]+1, h
			}
			byHeading = byHeading[1:]
		}
		behind[at] = append(behind[at], f)
		nearest = max(nearest, f.heading)
	}
	all := behind[0]
	for i, f := range placed {
		all = append(append(all, f), behind[i+1]...)
	}
	return all
}

// DefaultType returns the type of a column without a schema. The result id is
// an int64. Metas that are dates are timestamps. Everything else is a string.
func DefaultType(from schemas.Source) schemas.Type {
	switch {
	case from.Kind == schemas.FromResultID:
		return schemas.Type{Kind: schemas.Int64}
	case from.Kind == schemas.FromMeta && page.IsDate(from.ID):
		return schemas.Type{Kind: schemas.Timestamp}
	}
	return schemas.Type{Kind: schemas.String}
}
