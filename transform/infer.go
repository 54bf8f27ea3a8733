package transform

import (
	"maps"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// Infer makes the schema that a data set has without a schema file, from the
// headings and a sample of pages: result_id, every meta, every item by index;
// types by schemas.DefaultType, list<string> for items that hold several
// values in any sampled result. Fields that only the headings know have
// columns too, after their predecessor among the headings. With labels the
// items are named by their headings.
//
// Pages are given in the order of the range. Where an item moved on the form
// the last page's index stands; where it was relabelled, the first heading.
func Infer(name string, pages []*page.Page, labels bool) *schemas.Schema {
	var s sample
	s.at = map[schemas.Source]int{}
	for _, p := range pages {
		s.page(p)
	}
	var headings []page.Heading
	for _, p := range pages {
		headings = append(headings, p.Headings...)
	}
	s.headings(headings)
	return s.schema(name, labels)
}

// schema makes the schema of what was gathered.
func (s *sample) schema(name string, labels bool) *schemas.Schema {
	out := &schemas.Schema{Name: name, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep}
	id := schemas.Source{Kind: schemas.FromResultID}
	columns := slices.Concat(
		[]schemas.Column{{From: id, Type: schemas.DefaultType(id), Label: s.idLabel}},
		s.columns(schemas.FromMeta), s.columns(schemas.FromItem))
	var unique schemas.Uniquer
	for i, c := range columns {
		columns[i].Inferred = true
		columns[i].Name = unique.Name(schemas.DefaultName(c.From, c.Label, labels))
	}
	out.Columns = columns
	return out
}

// seen is what a sample tells of a field.
type seen struct {
	from    schemas.Source
	label   string
	index   int  // 0: not known
	several bool // several values in one result
	answers bool // some result has it
	heading int  // its place among the headings, from 1; 0: none
}

// sample gathers the fields of pages.
type sample struct {
	fields  []seen // in order of occurrence, those of results before those of headings
	at      map[schemas.Source]int
	idLabel string
}

// field returns the entry of a source, made if need be.
func (s *sample) field(from schemas.Source) *seen {
	i, ok := s.at[from]
	if !ok {
		i = len(s.fields)
		from = keep(from)
		s.at[from] = i
		s.fields = append(s.fields, seen{from: from})
	}
	return &s.fields[i]
}

// page takes in what the page's results have.
func (s *sample) page(p *page.Page) {
	counts := make([]int32, len(p.Fields)) // values of the result at hand
	cells := make([]int32, len(p.Fields))  // cells of the page
	several := make([]bool, len(p.Fields))
	for r := range p.Len() {
		for _, c := range p.Cells(r) {
			counts[c.Field] += c.Values
			cells[c.Field]++
			several[c.Field] = several[c.Field] || counts[c.Field] > 1
		}
		for _, c := range p.Cells(r) {
			counts[c.Field] = 0
		}
	}
	for i, x := range p.Fields {
		if cells[i] == 0 {
			continue // of a result that was filtered out
		}
		f := s.field(source(x))
		f.answers = true
		f.several = f.several || several[i]
		if x.Index > 0 {
			f.index = x.Index
		}
	}
}

// headings takes in the labels, and the fields that no result has.
func (s *sample) headings(headings []page.Heading) {
	for place, h := range headings {
		about := s.meanings(h)
		if about == nil && s.idLabel == "" {
			s.idLabel = strings.Clone(h.Label)
		}
		for _, from := range about {
			if f := s.field(from); f.heading == 0 {
				f.heading, f.label = place+1, strings.Clone(h.Label)
			}
		}
	}
}

// clone returns a sample that can go on by itself.
func (s *sample) clone() *sample {
	return &sample{fields: slices.Clone(s.fields), at: maps.Clone(s.at), idLabel: s.idLabel}
}

// meanings tells what a heading is about: by the element that it stands in, by
// the fields that results have (a meta and an item of that id share it), by
// the metas that are known, else an item. A heading "result_id" or "id" that
// is no field is about the result's id: nil.
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
	var placed, rest []seen
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
		slices.SortStableFunc(placed, func(a, b seen) int { return byIndex(a.index, b.index) })
	}
	slices.SortStableFunc(rest, func(a, b seen) int { return a.heading - b.heading })
	placed = insert(placed, rest)
	columns := make([]schemas.Column, len(placed))
	for i, f := range placed {
		t := schemas.DefaultType(f.from)
		if f.several && kind == schemas.FromItem {
			t = schemas.ListOf(t)
		}
		columns[i] = schemas.Column{From: f.from, Type: t, Label: f.label}
	}
	return columns
}

// byIndex compares indices on the form; items without one come last.
func byIndex(a, b int) int {
	switch {
	case a == b:
		return 0
	case a == 0:
		return 1
	case b == 0:
		return -1
	}
	return a - b
}

// insert puts each of the rest, which are in the order of the headings, behind
// its nearest predecessor among the headings; those without one come first. The
// predecessor is one of the placed, or the one of the rest before it.
func insert(placed, rest []seen) []seen {
	if len(rest) == 0 {
		return placed
	}
	byHeading := make([]int, 0, len(placed)) // the placed that have a heading
	for i, f := range placed {
		if f.heading > 0 {
			byHeading = append(byHeading, i)
		}
	}
	slices.SortStableFunc(byHeading, func(a, b int) int { return placed[a].heading - placed[b].heading })
	behind := make([][]seen, len(placed)+1) // [0]: before all, [i+1]: behind the placed i
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
	all := slices.Clone(behind[0])
	for i, f := range placed {
		all = append(append(all, f), behind[i+1]...)
	}
	return all
}
