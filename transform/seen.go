package transform

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/schemas"
)

// Bounds of what is remembered of a column's values: beyond them they are no
// choices, but free text.
const (
	MostChoices    = 500 // distinct values
	mostChoiceText = 200 // bytes of one
)

// Seen is what the rows of a column were seen to hold.
type Seen struct {
	Filled int64 // rows that hold a value: not null
	// ItemType and Index are an item's attributes as its last result has them,
	// "" and 0 where none has them.
	ItemType string
	Index    int
	// Choices counts the values of a list, or of an item of another type than
	// free text; nil where there are none or where Many is set. Columns with a
	// pii rule have none.
	Choices map[string]int64
	Many    bool // more or longer values than choices have
}

// freeText are the types of items whose values are no choices, as far as they
// are known (service-notes.md, "Item types").
var freeText = []string{
	"", "text", "textarea", "email", "phone", "tel", "number", "date", "time", "datetime", "file", "upload",
	"signature", "name", "address", "url", "hidden", "password", "calculation", "location",
}

// hasChoices tells whether a column's values are choices, by its item's type.
func hasChoices(c *column, itemType string) bool {
	if c.PII.Kind != schemas.PIINone || !c.isString() || !c.list && c.From.Kind != schemas.FromItem {
		return false
	}
	return c.list || !slices.Contains(freeText, strings.ToLower(itemType))
}

// seen is a column's entry, made if need be.
func (f *Flattener) seen(at int) *Seen {
	c := f.columns[at]
	if c.seen == nil {
		c.seen = &Seen{}
	}
	return c.seen
}

// see notes what a batch's columns hold.
func (f *Flattener) see(arrays []arrow.Array) {
	for i, c := range f.columns {
		filled := arrays[i].Len() - arrays[i].NullN()
		if filled == 0 {
			continue
		}
		s := f.seen(i)
		s.Filled += int64(filled)
		if !s.Many && hasChoices(c, s.ItemType) {
			s.take(arrays[i])
		}
	}
}

// take counts the values of a string array, or of the lists of one.
func (s *Seen) take(values arrow.Array) {
	if l, ok := values.(*array.List); ok {
		values = l.ListValues()
	}
	texts, ok := values.(*array.String)
	if !ok {
		return
	}
	for i := range texts.Len() {
		if texts.IsNull(i) {
			continue
		}
		if v := texts.Value(i); v != "" {
			s.choose(v, 1)
		}
	}
}

// choose counts a value n times.
func (s *Seen) choose(v string, n int64) {
	if s.Many {
		return
	}
	if _, known := s.Choices[v]; !known {
		if len(v) > mostChoiceText || len(s.Choices) == MostChoices {
			s.Many, s.Choices = true, nil
			return
		}
		if s.Choices == nil {
			s.Choices = map[string]int64{}
		}
		v = strings.Clone(v) // the batch's memory goes
	}
	s.Choices[v] += n
}

// attributes notes the type and place of the page's items.
func (f *Flattener) attributes() {
	for i, x := range f.page.Fields {
		at := f.at[i]
		if at < 0 || x.Type == "" && x.Index == 0 {
			continue
		}
		s := f.seen(int(at))
		if x.Type != "" && x.Type != s.ItemType {
			s.ItemType = strings.Clone(x.Type)
		}
		if x.Index != 0 {
			s.Index = x.Index
		}
	}
}

// add counts o into s; o is of later results.
func (s *Seen) add(o Seen) {
	s.Filled += o.Filled
	if o.ItemType != "" {
		s.ItemType = o.ItemType
	}
	if o.Index != 0 {
		s.Index = o.Index
	}
	if s.Many = s.Many || o.Many; s.Many {
		s.Choices = nil
		return
	}
	s.Choices = maps.Clone(s.Choices) // of a copy
	for v, n := range o.Choices {
		s.choose(v, n)
	}
}
