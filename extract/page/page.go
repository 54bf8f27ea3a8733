package page

import (
	"cmp"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Kind tells whether a field is a meta or an item of a result (service
// specification, section 2, "Result").
type Kind uint8

// The kinds of a field.
const (
	KindMeta Kind = iota + 1
	KindItem
	KindOther // the texts that people typed beside the choices of an item, see Page.Part
)

// String returns "meta", "item" or "other", the prefix of a column's source.
func (k Kind) String() string {
	return [...]string{KindMeta: "meta", KindItem: "item", KindOther: "other"}[k]
}

// Field is one meta or item that occurs in a page, identified by Kind and ID. Type and Index are
// those of its first occurrence in the page.
type Field struct {
	Kind  Kind
	ID    string
	Type  string // the item's type attribute, "" for metas and where it is missing
	Index int    // the item's index attribute, its position on the form; 0 if missing
	Plain bool   // API v2: an answer is a single text, so it is no item with choices
}

// Heading is a column's label, which the service sends if fs_include_headings is set. The
// id identifies the column: labels may repeat, be empty or hold line breaks.
type Heading struct {
	ID    string
	Label string // the text that the form shows, see PlainLabel
	// Kind is set if the heading was in a metas or items element, else 0.
	Kind Kind
}

// Cell is one meta or item of one result. Page.Value reads its values.
type Cell struct {
	Field  int32 // index into Page.Fields
	first  int32 // index into Page.values
	Values int32 // how many values; 0 for an item element without a value element
}

type result struct {
	id          int64
	first, last int32 // cells[first:last]
	early       bool  // see Page.Early
}

// Page is one decoded answer of Get Results. It owns the answer's bytes; results,
// cells and values are views into it and valid until Release. The zero value is
// an empty page. A Page is not safe for concurrent use.
type Page struct {
	Headings []Heading // in document order; empty unless the query asked for headings
	Fields   []Field   // in order of first occurrence
	Replaced int       // characters that XML 1.0 forbids or invalid UTF-8, replaced by U+FFFD
	Ends     bool      // the answer says that no page follows
	// Tells is set if the answer tells typed texts from choices, as API v2 does.
	Tells bool

	text    []byte // the answer in UTF-8; decoded texts are rewritten in place
	results []result
	cells   []Cell
	values  []Span
	labels  map[int32]Span // labels of "other" choices, by index in values: see Builder.Label
}

var pool = sync.Pool{New: func() any { return new(Page) }}

// MaxPooled is the size in bytes of the largest answer whose memory is kept for reuse. A
// huge answer must not hold its memory for the rest of the run.
const MaxPooled = 16 << 20

// Bounds of what an answer may cost, in any format.
const (
	MaxDepth   = 64     // elements, objects and arrays that are open at once
	MaxResults = 10_000 // results in a page
)

// Release empties the page and gives its memory back to the pool. No view
// into the page may be used afterwards.
func (p *Page) Release() {
	if cap(p.text) <= MaxPooled {
		p.reset()
		pool.Put(p)
	}
}

func (p *Page) reset() {
	p.Headings, p.Fields, p.Replaced, p.Ends, p.Tells = p.Headings[:0], p.Fields[:0], 0, false, false
	p.text, p.results, p.cells, p.values = p.text[:0], p.results[:0], p.cells[:0], p.values[:0]
	clear(p.labels)
}

// Len returns the number of results.
func (p *Page) Len() int { return len(p.results) }

// ID returns the id of result i, 0 <= i < Len.
func (p *Page) ID(i int) int64 { return p.results[i].id }

// Early tells whether result i was finished before the window that was asked for, by less
// than a second. An unfinished result counts as of its start. API v2 cannot be asked without
// such results, and counts them (service-v2.md, section 9). They belong to the window before.
func (p *Page) Early(i int) bool { return p.results[i].early }

// MarkEarly marks result i as finished before the window that was asked for, see Early.
func (p *Page) MarkEarly(i int) { p.results[i].early = true }

// DropEarly removes the early results (see Early), and returns how many there were.
func (p *Page) DropEarly() int {
	n := len(p.results)
	p.results = slices.DeleteFunc(p.results, func(r result) bool { return r.early })
	return n - len(p.results)
}

// IDs returns the ids of the results, in the order of the results.
func (p *Page) IDs() []int64 {
	ids := make([]int64, len(p.results))
	for i, r := range p.results {
		ids[i] = r.id
	}
	return ids
}

// Order tells whether the ids of the results strictly rise, and whether they
// strictly fall. With fewer than two results both are true.
func (p *Page) Order() (rises, falls bool) {
	rises, falls = true, true
	for i := 1; i < len(p.results); i++ {
		a, b := p.results[i-1].id, p.results[i].id
		rises, falls = rises && a < b, falls && a > b
	}
	return rises, falls
}

// Cells returns the metas and items of result i in document order. A field
// may occur more than once in a result.
func (p *Page) Cells(i int) []Cell {
	r := p.results[i]
	return p.cells[r.first:r.last]
}

// Value returns value i of the cell, 0 <= i < c.Values, as valid UTF-8. The bytes are a view of the
// page: they must not be changed, appended to or kept beyond Release. Their capacity reaches to
// the end of the answer, so that callers may read words of eight bytes beyond the value's end.
func (p *Page) Value(c Cell, i int) []byte {
	s := p.values[int(c.first)+i]
	return p.text[s.Start:s.End]
}

// Filter keeps only the results for whose id keep returns true.
func (p *Page) Filter(keep func(id int64) bool) {
	p.results = slices.DeleteFunc(p.results, func(r result) bool { return !keep(r.id) })
}

// SortByID orders the results by ascending id.
func (p *Page) SortByID() {
	slices.SortStableFunc(p.results, func(a, b result) int { return cmp.Compare(a.id, b.id) })
}

// They are compiled when a label has one of their characters, and not at each start.
var (
	lineTags   = compiled(`(?i)</?(?:a|b|big|em|font|i|small|span|strong|sub|sup|u)(?:\s[^<>]*)?/?>`)
	blockTags  = compiled(`(?i)</?(?:br|center|div|h[1-6]|hr|img|li|ol|p|table|tbody|td|th|tr|ul)(?:\s[^<>]*)?/?>`)
	references = compiled(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31}\d{0,2});`)
)

func compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// PlainLabel returns the text of a label that holds HTML, as a form shows it: without tags, with
// characters in place of references such as &amp;. A label without tags and references, such as
// "a < b & c", is returned as it is.
func PlainLabel(label string) string {
	if !strings.ContainsAny(label, "<&") {
		return label
	}
	text := blockTags().ReplaceAllString(lineTags().ReplaceAllString(label, ""), " ")
	if text != label { // HTML shows line breaks as blanks
		text = strings.Join(strings.Fields(text), " ")
	}
	return references().ReplaceAllStringFunc(text, html.UnescapeString)
}

// Metas that have a meaning for reading results.
const (
	MetaStatus = "result_status"
	MetaStart  = "date_start"
	MetaFinish = "date_finish" // when the result was finished; services filter by this date
	MetaUpdate = "date_update" // when the result last changed
)

// metas are the metas that services have, in the order in which API v1 sends them.
var metas = []string{
	MetaStatus, "login_username", "login_email", MetaStart, MetaFinish, MetaUpdate,
	"user_ip", "user_browser", "user_os", "user_device", "user_referrer",
	"payment_status", "payment_amount", "score",
}

// MetaPlace returns the position of a meta in the list of the known metas (service-notes.md,
// "Meta ids"), which orders columns. Unknown metas come last.
func MetaPlace(id string) int {
	if i := slices.Index(metas, id); i >= 0 {
		return i
	}
	return len(metas)
}

// KnownMeta tells whether services have a meta of that id.
func KnownMeta(id string) bool { return slices.Contains(metas, id) }

// IsDate tells whether a meta, known or unknown, is a date with a time: its id begins with date_.
func IsDate(id string) bool { return strings.HasPrefix(id, "date_") }
