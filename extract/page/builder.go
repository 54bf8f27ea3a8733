package page

// Span is a part of a Builder's Text: the bytes from Start up to End.
type Span struct{ Start, End int32 }

// Builder fills a page while an answer is decoded. Begin each result with Result and each of its
// cells with Cell, and add the values of the cell with Value. A Builder is not safe for
// concurrent use. A builder that is used again keeps its memory.
type Builder struct {
	// Text is the answer in UTF-8, into which the spans of values point. The
	// decoder may rewrite or replace it until the page is finished.
	Text []byte
	// Spare is memory for Text if an answer has to be rewritten. The decoder swaps both.
	Spare []byte
	// Page is the page that is being filled. The decoder sets its exported fields.
	Page *Page

	fields  [2]map[string]int32 // the page's fields by id, for metas and for items
	interns map[string]string   // ids and types seen, so that no string is allocated twice
}

// Begin takes an empty page from the pool. For Text it uses again the memory of that page or, if
// Spare is larger because the last answer was rewritten, the memory of Spare.
func (b *Builder) Begin() {
	b.Page = pool.Get().(*Page)
	b.Text = b.Page.text[:0]
	if cap(b.Spare) > cap(b.Text) {
		b.Text, b.Spare = b.Spare[:0], b.Text
	}
	b.Reset()
}

// End releases the page if Finish was not called, and frees Spare if it is too large to be kept.
func (b *Builder) End() {
	if b.Page != nil {
		b.Finish().Release()
	}
	if cap(b.Spare) > MaxPooled {
		b.Spare = nil
	}
}

// Reset empties the page and keeps Text, so that Text can be decoded once more.
func (b *Builder) Reset() {
	b.Page.reset()
	clear(b.fields[0])
	clear(b.fields[1])
}

// Finish returns the page, which then owns the builder's Text.
func (b *Builder) Finish() *Page {
	p := b.Page
	p.text = b.Text
	b.Page, b.Text = nil, nil
	return p
}

// Field returns the index of a field in Page.Fields. It adds a field that is
// new to the page, without Type and Index; added is then true.
func (b *Builder) Field(kind Kind, id []byte) (field int32, added bool) {
	byID := &b.fields[kind-1]
	if field, ok := (*byID)[string(id)]; ok {
		return field, false
	}
	field = int32(len(b.Page.Fields)) //nolint:gosec // a field takes some bytes of Text
	f := Field{Kind: kind, ID: b.Intern(id)}
	b.Page.Fields = append(b.Page.Fields, f)
	if *byID == nil {
		*byID = make(map[string]int32)
	}
	(*byID)[f.ID] = field
	return field, true
}

// Result begins a result with an id.
func (b *Builder) Result(id int64) {
	at := int32(len(b.Page.cells)) //nolint:gosec // a cell takes some bytes of Text
	b.Page.results = append(b.Page.results, result{id: id, first: at, last: at})
}

// SetID sets the id of the result that was begun last.
func (b *Builder) SetID(id int64) { b.Page.results[len(b.Page.results)-1].id = id }

// Cell begins a meta or item of the result that was begun last. field is its index in Page.Fields.
func (b *Builder) Cell(field int32) {
	p := b.Page
	p.cells = append(p.cells, Cell{Field: field, first: int32(len(p.values))}) //nolint:gosec // a value takes some bytes of Text
	p.results[len(p.results)-1].last++
}

// Value adds a value to the cell that was begun last.
func (b *Builder) Value(text Span) {
	p := b.Page
	p.values = append(p.values, text)
	p.cells[len(p.cells)-1].Values++
}

// Label says that the value that was added last is the text typed for an "other" choice. text is
// the span of the choice's label. See Page.Part.
func (b *Builder) Label(text Span) {
	p := b.Page
	if p.labels == nil {
		p.labels = map[int32]Span{}
	}
	p.labels[int32(len(p.values)-1)] = text //nolint:gosec // a value takes some bytes of Text
}

// Bounds of the strings that Intern keeps: how many, and the length of each in bytes.
const (
	maxInterns   = 4096
	maxInternLen = 256
)

// Intern returns text as a string. Equal texts share one string.
func (b *Builder) Intern(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if s, ok := b.interns[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(s) > maxInternLen {
		return s
	}
	if b.interns == nil || len(b.interns) >= maxInterns {
		b.interns = make(map[string]string)
	}
	b.interns[s] = s
	return s
}
