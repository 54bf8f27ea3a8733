package extract

import (
	"slices"
	"sync"
)

// Kind tells where in a result a field stands: among its metas or among its
// items (service specification, section 2, "Result").
type Kind uint8

// The kinds of a field.
const (
	KindMeta Kind = iota + 1
	KindItem
)

// String returns "meta" or "item", the prefix of a column's source.
func (k Kind) String() string {
	if k == KindMeta {
		return "meta"
	}
	return "item"
}

// Field is one meta or item id that occurs in a page. (Kind, ID) is its
// identity; Type and Index are those of its first occurrence in the page.
type Field struct {
	Kind  Kind
	ID    string
	Type  string // the item's type attribute, "" for metas and where it is missing
	Index int    // the item's index attribute (position on the form), 0 where it is missing
}

// Heading is a column's label as the service gives it with
// fs_include_headings. The id is the identity: labels repeat, may be empty and
// may hold line breaks.
type Heading struct {
	ID    string
	Label string
	// Kind is set where the heading stood under a metas or items element, else 0.
	Kind Kind
}

// Cell is one meta or item of one result: a field and its values. Values are
// read through the page that holds the cell.
type Cell struct {
	Field  int32 // index into Page.Fields
	first  int32 // index into Page.values
	Values int32 // how many values; 0 for an item element without a value element
}

type span struct{ start, end int32 }

type result struct {
	id          int64
	first, last int32 // cells[first:last]
}

// Page is one decoded answer of Get Results. It owns the answer's bytes;
// results, cells and values are views into it and are valid until Release.
// A page is decoded whole before anything downstream sees it.
//
// The zero value is an empty page. A Page is not safe for concurrent use.
type Page struct {
	Headings []Heading // in document order; empty unless asked for
	Fields   []Field   // in order of first occurrence
	Replaced int       // characters that XML 1.0 forbids or invalid UTF-8, replaced by U+FFFD

	text    []byte // the answer in UTF-8; texts that held references or several parts are rewritten in place
	spare   []byte // memory for text where the answer is not clean UTF-8
	results []result
	cells   []Cell
	values  []span
	interns map[string]string // ids and types seen, so that a pooled page allocates no string twice
	layout  layout
	scan    scanner
	media   mediaType // of the Content-Type seen last
}

var pagePool = sync.Pool{New: func() any { return new(Page) }}

// NewPage returns an empty page from the pool. Release gives it back.
func NewPage() *Page { return pagePool.Get().(*Page) }

// maxPooled is the size of the texts of the largest page that is kept for
// reuse: one huge answer must not hold its memory for the rest of the run.
const maxPooled = 16 << 20

// Release empties the page and gives its memory back to the pool. No view
// into the page may be used afterwards.
func (p *Page) Release() {
	if cap(p.text)+cap(p.spare) > maxPooled {
		return
	}
	p.reset()
	pagePool.Put(p)
}

func (p *Page) reset() {
	p.Headings, p.Fields, p.Replaced = p.Headings[:0], p.Fields[:0], 0
	p.text, p.results, p.cells, p.values = p.text[:0], p.results[:0], p.cells[:0], p.values[:0]
}

// Len returns the number of results.
func (p *Page) Len() int { return len(p.results) }

// ID returns the id of result i, 0 <= i < Len.
func (p *Page) ID(i int) int64 { return p.results[i].id }

// Cells returns the metas and items of result i in document order. A field
// may occur more than once in a result.
func (p *Page) Cells(i int) []Cell {
	r := p.results[i]
	return p.cells[r.first:r.last]
}

// Value returns value i of the cell, 0 <= i < c.Values, as valid UTF-8. The
// bytes are a view: they must not be changed nor kept beyond Release.
func (p *Page) Value(c Cell, i int) []byte {
	s := p.values[int(c.first)+i]
	return p.text[s.start:s.end:s.end]
}

// Filter keeps the results whose id passes keep.
func (p *Page) Filter(keep func(id int64) bool) {
	p.results = slices.DeleteFunc(p.results, func(r result) bool { return !keep(r.id) })
}

// SortByID orders the results by ascending id.
func (p *Page) SortByID() {
	slices.SortStableFunc(p.results, func(a, b result) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return 0
	})
}
