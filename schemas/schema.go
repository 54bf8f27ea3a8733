package schemas

import (
	"cmp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Unknown says what happens to a meta or item that the schema does not list.
type Unknown string

// The rules for unknown fields.
const (
	UnknownAdd    Unknown = "add"    // a column is appended, see Late (the default)
	UnknownIgnore Unknown = "ignore" // the field is left out and counted
	UnknownFail   Unknown = "fail"   // the run fails with a data error
)

// OnError says what happens to a value that does not fit its column's type.
type OnError string

// The rules for values that do not fit.
const (
	OnErrorReject  OnError = "reject"   // the result goes to the dead letters (the default)
	OnErrorFail    OnError = "fail"     // the run fails with a data error
	OnErrorSetNull OnError = "set_null" // the value becomes null and is counted
)

// Empty says what an empty value becomes.
type Empty string

// The rules for empty values.
const (
	EmptyKeep   Empty = "keep"    // "" in a string column, an empty list in a list column, null in any other (the default)
	EmptyAsNull Empty = "as_null" // null everywhere
)

// ListAs says how CSV shows a list.
type ListAs string

// The ways to show a list in CSV.
const (
	ListJoined  ListAs = "joined"  // CSV shows a list as one field, joined by | (the default)
	ListJSON    ListAs = "json"    // CSV shows a list as one field, a JSON array
	ListColumns ListAs = "columns" // CSV shows a list as a boolean column for each choice
)

// Other says what becomes of the text that somebody typed beside the choices of an item.
type Other string

// The ways to show a typed text.
const (
	OtherColumn Other = "column" // it stands in a column of its own, see Column.Typed
	OtherInline Other = "inline" // it stands in place of the choice's label
)

// Reading says how to read the texts of a column that are not in the form its
// type expects. The zero value means that form. For a list, Reading applies to
// the elements.
type Reading struct {
	// Formats are the formats of a date or a timestamp, such as "MM/DD/YYYY"
	// (ParseFormat). The first one that a value fits is used. If
	// there are none, values have the form that package transform documents.
	Formats []string `json:",omitempty"`
	// True and False are the words of a bool, in any letter case. If there are
	// none, the words are true, false, 1 and 0.
	True  []string `json:",omitempty"`
	False []string `json:",omitempty"`
	// Decimal is the sign before the fraction of a number; "" means the point.
	// Group is the sign between groups of three digits; "" means none. Both are
	// single characters, such as "," and U+202F.
	Decimal string `json:",omitempty"`
	Group   string `json:",omitempty"`
}

// Column is one column of a schema.
type Column struct {
	Name    string
	From    Source
	Type    Type
	OnError OnError // what happens to values that do not fit; "" is OnErrorReject
	Label   string  // the column's heading, "" where none is known
	// Inferred marks a column that nobody declared. Its values never cause a
	// result to be rejected. Several values for a string are joined as in CSV.
	Inferred bool

	Reading  Reading // how values are read, beyond the type
	Required bool    // a missing or null value does not fit (nullable: false)
	PII      PII     // what is done to personal data
	ListAs   ListAs  // how CSV shows the column's lists; "" is ListJoined
	// Choices are the values for which ListColumns makes columns, in order.
	// Other values that turn up follow them. If the column is Apart, they also tell
	// what people chose from what they typed, where the service does not tell.
	Choices []string `json:",omitempty"`
	// Other says where typed texts stand. "" is OtherColumn if the service tells what was typed,
	// or if the schema is Apart for the column.
	Other Other `json:",omitempty"`
	// Explode asks for another output with a row for each element of the list.
	Explode bool
}

// Written tells whether the column is in the outputs. It is not if its PII rule is PIIDrop.
func (c Column) Written() bool { return c.PII.Kind != PIIDrop }

// Schema describes the columns of a data set and the rules for their values. Columns keep their
// order.
type Schema struct {
	Name       string
	Unknown    Unknown // what happens to fields that are not listed; "" is UnknownAdd
	MaxRejects int     // most rejected results; more fail the run
	MaxColumns int     // most columns; more fail the run; 0 is DefaultMaxColumns
	Empty      Empty   // what empty values become; "" is EmptyKeep
	Columns    []Column
	// HMACReference says where the key of PIIHMAC comes from, as schema files
	// spell it: ${env:NAME} or ${file:PATH}. "" means the default.
	HMACReference string
	HMACKey       HMACKey // the key of PIIHMAC; zero if no column has that rule
}

// Written returns the columns that are in the outputs: all but those whose PII
// rule is PIIDrop.
func (s *Schema) Written() []Column {
	return slices.DeleteFunc(slices.Clone(s.Columns), func(c Column) bool { return !c.Written() })
}

// Needs tells whether a column has a PII rule of this kind.
func (s *Schema) Needs(kind PIIKind) bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.PII.Kind == kind })
}

// Adds tells whether fields that the schema does not list become columns.
func (s *Schema) Adds() bool { return s.Unknown == "" || s.Unknown == UnknownAdd }

// MostColumns returns how many columns the schema may have, including those that runs add.
func (s *Schema) MostColumns() int { return cmp.Or(s.MaxColumns, DefaultMaxColumns) }

// DefaultMaxColumns is used if a schema file does not set max_columns, or if
// there is no schema file.
const DefaultMaxColumns = 10_000

// DefaultMaxRejects is used if a schema file does not set max_rejects.
const DefaultMaxRejects = 100

// Keys of the metadata of every field of an Arrow schema that ArrowSchema makes.
const (
	MetaFrom  = "formetl.from"  // the column's Source, which identifies the column
	MetaLabel = "formetl.label" // the column's Label; left out where it is ""
	// MetaListAs is the column's ListAs. It is left out unless that is ListJSON or
	// ListColumns. MetaChoices is a JSON array of [value, name] pairs: the column's Choices
	// and the names of their columns. It is left out unless ListAs is ListColumns.
	MetaListAs  = "formetl.list_as"
	MetaChoices = "formetl.choices"
)

// ArrowSchema returns the Arrow schema of the columns, in order. Every field is
// nullable, because a result may lack any field, and files of several runs are
// read together. A field carries MetaFrom, and if they apply MetaLabel,
// MetaListAs and MetaChoices. The columns must be valid.
func ArrowSchema(columns []Column) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	names := ChoiceNames(columns)
	for i, c := range columns {
		fields[i] = c.arrow(names[i])
	}
	return arrow.NewSchema(fields, nil)
}

// arrow returns the column's Arrow field. choices are the names of its choices' columns.
func (c Column) arrow(choices []string) arrow.Field {
	keys, values := []string{MetaFrom}, []string{c.From.String()}
	if c.Label != "" {
		keys, values = append(keys, MetaLabel), append(values, c.Label)
	}
	switch c.ListAs {
	case ListJSON:
		keys, values = append(keys, MetaListAs), append(values, string(c.ListAs))
	case ListColumns:
		keys, values = append(keys, MetaListAs, MetaChoices), append(values, string(c.ListAs), c.choicePairs(choices))
	}
	return arrow.Field{Name: c.Name, Type: c.Type.Arrow(), Nullable: true, Metadata: arrow.NewMetadata(keys, values)}
}

// ColumnFrom returns the column of a batch that is filled from a source, or nil.
func ColumnFrom(b arrow.RecordBatch, from Source) arrow.Array {
	for i, field := range b.Schema().Fields() {
		if text, _ := field.Metadata.GetValue(MetaFrom); text == from.String() {
			return b.Column(i)
		}
	}
	return nil
}

// Apart tells whether the schema says that texts typed beside the choices of column c, which is
// of the schema, stand in a column of their own.
func (s *Schema) Apart(c Column) bool {
	return c.From.Kind == FromItem && (c.Other == OtherColumn || s.Find(Source{FromOther, c.From.ID}) >= 0)
}

// Typed returns the column of the texts typed beside the choices of column c, where no schema
// lists it. It has the pii rule of c. A name that would be too long is cut and ends with a hash.
func (c Column) Typed(naming Naming) Column {
	from, name, most := Source{FromOther, c.From.ID}, c.Name+"_other", MaxName
	if naming == ByHeading && c.Inferred {
		name, most = otherLabel(c.Name), MaxHeading
	}
	if len(name) > most {
		name = hashed(name, from)
	}
	return Column{Name: name, From: from, Type: Type{Kind: String}, Label: otherLabel(c.Label), PII: c.PII, Inferred: true}
}

// otherLabel returns the label of the column of typed texts, "" if the item has none.
func otherLabel(item string) string {
	if item == "" {
		return ""
	}
	return item + " (other)"
}

// AddTyped puts the column of typed texts (Column.Typed) behind each column for which wants
// returns true, unless the schema lists that column.
func (s *Schema) AddTyped(naming Naming, wants func(Column) bool) {
	var all []Column
	var names Uniquer
	places := s.Places()
	for _, c := range s.Columns {
		names.Name(c.Name)
	}
	for _, c := range s.Columns {
		all = append(all, c)
		t := c.Typed(naming)
		if _, listed := places[t.From]; c.From.Kind == FromItem && wants(c) && !listed {
			t.Name, t.OnError, t.Inferred = names.Name(t.Name), c.OnError, c.Inferred
			all = append(all, t)
		}
	}
	s.Columns = all
}

// Places returns the index of the first column of each source. For many
// look-ups it is faster than Find, which searches all columns each time.
func (s *Schema) Places() map[Source]int {
	places := make(map[Source]int, len(s.Columns))
	for i, c := range s.Columns {
		if _, twice := places[c.From]; !twice {
			places[c.From] = i
		}
	}
	return places
}

// Find returns the index of the column that is filled from the source, or -1.
func (s *Schema) Find(from Source) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.From == from })
}
