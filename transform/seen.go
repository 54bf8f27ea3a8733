package transform

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/schemas"
)

// Bounds of the choices that are remembered for a column. Values beyond these
// bounds are taken for free text.
const (
	MostChoices     = 500     // most distinct values of a column
	mostChoiceText  = 200     // most bytes of one value
	mostChoiceTexts = 4 << 20 // most bytes of the values of all columns of a Flattener
)

// Seen describes the values that the rows of a column hold.
type Seen struct {
	Filled int64 // number of rows that hold a value, which is not null
	// ItemType and Index are attributes of the item in its last result, "" and
	// 0 if no result has them.
	ItemType string
	Index    int
	// Choices counts each value of a list, or of an item whose type says that
	// people choose its values. It is nil if there are none or if Many is set.
	// Columns with typed texts or a pii rule have no choices.
	Choices map[string]int64
	Many    bool // there are more values, or longer ones, than choices may have
}

// choiceWords occur in types of items whose values people choose, typedWords in
// types of items whose values people type. The specification lists no item
// types (section 2, "Result"). If the type is unknown, the values of a list are
// choices and single values are not.
var (
	choiceWords = []string{"radio", "select", "drop", "check", "choice", "option", "rating", "likert", "scale", "list", "yes", "bool"}
	typedWords  = []string{"text", "mail", "phone", "name", "address", "file", "upload"}
)

// hasChoices tells whether a column's values are choices, by the schema or its item's type.
func hasChoices(c *column, itemType string) bool {
	if c.PII.Kind != schemas.PIINone || !c.isString() || !c.list && c.From.Kind != schemas.FromItem {
		return false
	}
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(itemType), word) })
	}
	return c.ListAs == schemas.ListColumns || len(c.Choices) > 0 || !says(typedWords) && (c.list || says(choiceWords))
}

// seen returns the Seen of the column with index at. It makes one if the column has none.
func (f *Flattener) seen(at int) *Seen {
	c := f.columns[at]
	if c.seen == nil {
		c.seen = &Seen{}
	}
	return c.seen
}

// see records the values of a batch in the Seen of each column. arrays holds the batch's
// columns.
func (f *Flattener) see(arrays []arrow.Array) {
	for i, c := range f.columns {
		filled := arrays[i].Len() - arrays[i].NullN()
		if filled == 0 {
			continue
		}
		s := f.seen(i)
		s.Filled += int64(filled)
		if !s.Many && hasChoices(c, s.ItemType) {
			room := &f.choiceRoom
			if c.ListAs == schemas.ListColumns {
				room = nil // every choice becomes a column of its own
			}
			s.take(arrays[i], room)
		}
	}
}

// take counts the values of a string array, or of an array of lists of strings.
// room is how many bytes new texts may take. It is nil, for no bound, if each choice has a
// column of its own.
func (s *Seen) take(values arrow.Array, room *int64) {
	if l, ok := values.(*array.List); ok {
		values = l.ListValues()
	}
	texts, ok := values.(*array.String)
	if !ok {
		return
	}
	counts := map[string]int64{} // of the distinct values, in the memory of the batch
	for i := range texts.Len() {
		if v := texts.Value(i); v != "" && texts.IsValid(i) && len(counts) <= MostChoices {
			counts[v]++
		}
	}
	for v, n := range counts {
		s.choose(v, n, room)
	}
}

// choose counts a value n times. room is how many bytes new texts may take; nil is no bound.
func (s *Seen) choose(v string, n int64, room *int64) {
	if s.Many {
		return
	}
	if _, known := s.Choices[v]; !known {
		size := int64(len(v))
		if len(v) > mostChoiceText || len(s.Choices) == MostChoices || room != nil && size > *room {
			s.giveUp(room)
			return
		}
		if room != nil {
			*room -= size
		}
		if s.Choices == nil {
			s.Choices = map[string]int64{}
		}
	}
	// The batch's memory is used again after its release. An assignment to a map
	// replaces the text of a key that is there, so a known value is cloned too.
	s.Choices[strings.Clone(v)] += n
}

// giveUp forgets the choices of a column with too many, and adds their bytes to room.
func (s *Seen) giveUp(room *int64) {
	if room != nil {
		for v := range s.Choices {
			*room += int64(len(v))
		}
	}
	s.Many, s.Choices = true, nil
}

// attributes records the type and index of the items on the page.
func (f *Flattener) attributes() {
	for i, x := range f.row.page.Fields {
		at := f.fields.at[i]
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

// add adds to s the values that o describes, which come from later results.
func (s *Seen) add(o Seen) {
	s.Filled += o.Filled
	s.ItemType, s.Index = cmp.Or(o.ItemType, s.ItemType), cmp.Or(o.Index, s.Index)
	if s.Many = s.Many || o.Many; s.Many {
		s.Choices = nil
		return
	}
	s.Choices = maps.Clone(s.Choices) // o must not change the original map
	for v, n := range o.Choices {
		s.choose(v, n, nil)
	}
}
