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
// headings and a sample of pages. Its columns are result_id, every meta, and every
// item by its index. Types are those of schemas.DefaultType. Items that hold
// several values in any sampled result are list<string>. Fields that only the
// headings know have columns too, after their predecessor among the headings. With
// labels the items are named by their headings.
//
// Pages are given in the order of the range. Of an item that moved on the form
// the last page's index counts, and of one that was relabelled the first heading.
func Infer(name string, pages []*page.Page, labels bool) *schemas.Schema {
	var s sample
	for _, p := range pages {
		s.page(p)
	}
	for _, p := range pages {
		s.addHeadings(p.Headings)
	}
	return s.schema(name, labels)
}

// sample is what pages tell of the fields of a form.
type sample struct {
	fields   []*sampled // in order of occurrence, those of results before those of headings
	at       map[schemas.Source]*sampled
	results  int
	headings int // so many were taken in
	idLabel  string
	clock    *clock // reads wall-clock times; nil: values are not looked at
}

// sampled is what a sample tells of a field.
type sampled struct {
	from     schemas.Source
	label    string
	itemType string
	index    int // its place on the form; 0: not known
	heading  int // its place among the headings, from 1; 0: none

	answers bool // some result has it
	filled  int  // results with a value that is not empty
	empty   int  // values that are empty
	several int  // results with several values
	shapes  shapes

	values int32 // of the current result
	full   bool  // one of them is not empty
}

// field returns the entry of a source, made if need be.
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

// page takes in what the page's results have.
func (s *sample) page(p *page.Page) {
	fields := make([]*sampled, len(p.Fields))
	for i, owner := range owners(p) {
		if owner < 0 {
			continue // only a result that was filtered out has the field
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

// result takes in the cells of one result of the page.
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
		}
	}
	for _, c := range cells { // of several cells of one field the first one counts
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

// addHeadings takes in the labels, and the fields that no result has. All pages
// must have been taken in.
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

// schema makes the schema of what was gathered.
func (s *sample) schema(name string, labels bool) *schemas.Schema {
	id := schemas.Source{Kind: schemas.FromResultID}
	columns := slices.Concat(
		[]schemas.Column{{From: id, Type: schemas.DefaultType(id), Label: s.idLabel}},
		s.columns(schemas.FromMeta), s.columns(schemas.FromItem))
	var unique schemas.Uniquer
	for i, c := range columns {
		columns[i].Inferred = true
		columns[i].Name = unique.Name(schemas.DefaultName(c.From, c.Label, labels))
	}
	return &schemas.Schema{
		Name: name, Columns: columns, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep,
	}
}

// meanings tells what a heading is about. The element that it stands in may say
// whether it is a meta or an item. Else it is about the fields of that id that
// results have, a meta and an item together. Without any it is about a meta of a
// known id, or about an item. It returns nil for a heading about the result's id:
// "result_id" or "id", which no field has.
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
	case h.Kind == page.KindMeta || h.Kind == 0 && knownMeta(h.ID):
		return []schemas.Source{meta}
	}
	return []schemas.Source{item}
}

// knownMeta tells whether services of this kind have a meta of that id
// (service-notes.md, "Meta ids").
func knownMeta(id string) bool {
	switch id {
	case "result_status", "login_username", "login_email", "date_start", "date_finish", "date_update",
		"user_ip", "user_browser", "user_os", "user_device", "user_referrer",
		"payment_status", "payment_amount", "score":
		return true
	}
	return strings.HasPrefix(id, "date_")
}

// columns returns the columns of one kind in their order, without names.
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
		place := func(f *sampled) int { return cmp.Or(f.index, math.MaxInt) } // items without an index come last
		slices.SortStableFunc(placed, func(a, b *sampled) int { return cmp.Compare(place(a), place(b)) })
	}
	slices.SortStableFunc(rest, func(a, b *sampled) int { return a.heading - b.heading })
	placed = insert(placed, rest)
	columns := make([]schemas.Column, len(placed))
	for i, f := range placed {
		t := schemas.DefaultType(f.from)
		if f.several > 0 && kind == schemas.FromItem {
			t = schemas.ListOf(t)
		}
		columns[i] = schemas.Column{From: f.from, Type: t, Label: f.label}
	}
	return columns
}

// insert puts each of the rest behind its nearest predecessor among the headings.
// Those without one come first. The rest are in the order of the headings. The
// predecessor is one of the placed, or the one of the rest before it.
func insert(placed, rest []*sampled) []*sampled {
	var byHeading []int // the placed that have a heading
	for i, f := range placed {
		if f.heading > 0 {
			byHeading = append(byHeading, i)
		}
	}
	slices.SortStableFunc(byHeading, func(a, b int) int { return placed[a].heading - placed[b].heading })
	behind := make([][]*sampled, len(placed)+1) // [0]: before all, [i+1]: behind the placed i
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
