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
	UnknownAdd    Unknown = "add"    // a column is appended, typed as without a schema (the default)
	UnknownIgnore Unknown = "ignore" // the field is left out; how often is counted
	UnknownFail   Unknown = "fail"   // the run fails with a data error
)

// OnError says what happens to a value that does not fit its column's type.
type OnError string

// The rules for values that do not fit.
const (
	OnErrorReject  OnError = "reject"   // the result goes to the dead letters (the default)
	OnErrorFail    OnError = "fail"     // the run fails with a data error
	OnErrorSetNull OnError = "set_null" // the value becomes null, counted
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
	ListJoined  ListAs = "joined"  // one field, elements joined by | (the default)
	ListJSON    ListAs = "json"    // one field, a JSON array
	ListColumns ListAs = "columns" // a boolean column for each choice
)

// Reading says how the texts of a column are read where they are not in the
// form that its type expects. The zero value is that form. For a list it
// applies to the elements.
type Reading struct {
	// Formats are those of a date or a timestamp, such as "MM/DD/YYYY" or
	// "%m/%d/%Y" (ParseFormat): the first that a value fits is taken. None: the
	// form that package transform documents.
	Formats []string `json:",omitempty"`
	// True and False are the words of a bool, whatever their letter case; none:
	// true, false, 1 and 0.
	True  []string `json:",omitempty"`
	False []string `json:",omitempty"`
	// Decimal is the sign before a number's fraction, "" for the point; Group
	// that between its groups of three digits, "" for none. Both are single
	// characters, such as "," and U+202F.
	Decimal string `json:",omitempty"`
	Group   string `json:",omitempty"`
}

// Column is one column of a schema.
type Column struct {
	Name    string
	From    Source
	Type    Type
	OnError OnError // "" is OnErrorReject
	Label   string  // the heading, "" where none is known
	// Inferred marks a column that nobody declared. Its values never reject a
	// result, and several values for a string are joined as in CSV.
	Inferred bool

	Reading  Reading // how values are read, beyond the type
	Required bool    // a value that is missing or null does not fit (nullable: false)
	PII      PII     // what is done to personal data
	ListAs   ListAs  // "" is ListJoined
	// Choices are the values that a list of ListColumns has columns for, in
	// order. Other values that turn up follow them.
	Choices []string `json:",omitempty"`
	// Explode asks for a child output with a row for each element of the list.
	Explode bool
}

// Written tells whether the column is in the outputs.
func (c Column) Written() bool { return c.PII.Kind != PIIDrop }

// Schema is the contract of a data set. Columns keep their order.
type Schema struct {
	Name       string
	Unknown    Unknown // "" is UnknownAdd
	MaxRejects int     // more rejected results fail the run
	MaxColumns int     // more columns fail the run; 0 is DefaultMaxColumns
	Empty      Empty   // "" is EmptyKeep
	Columns    []Column
	// HMACReference is where the key of PIIHMAC comes from, as schema files
	// spell it: ${env:NAME} or ${file:PATH}; "" for the default.
	HMACReference string
	HMACKey       HMACKey // what the reference gave; zero where no column needs it
}

// Written are the columns that are in the outputs: all but those whose pii
// rule is drop.
func (s *Schema) Written() []Column {
	return slices.DeleteFunc(slices.Clone(s.Columns), func(c Column) bool { return !c.Written() })
}

// Needs tells whether a column has the rule.
func (s *Schema) Needs(kind PIIKind) bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.PII.Kind == kind })
}

// MostColumns is how many columns the schema may have, with those that are added.
func (s *Schema) MostColumns() int { return cmp.Or(s.MaxColumns, DefaultMaxColumns) }

// DefaultMaxColumns is used where a schema file does not say max_columns, or
// there is none.
const DefaultMaxColumns = 10_000

// DefaultMaxRejects is used where a schema file does not say max_rejects.
const DefaultMaxRejects = 100

// Keys of the metadata of every field of an Arrow schema that ArrowSchema makes.
const (
	MetaFrom  = "formetl.from"  // the column's Source: a column's identity
	MetaLabel = "formetl.label" // the column's Label; left out where it is ""
	// MetaListAs is the column's ListAs, and MetaChoices its Choices with the
	// names of their columns: a JSON array of [value, name] pairs. Both are left
	// out where CSV shows no list, or joins it.
	MetaListAs  = "formetl.list_as"
	MetaChoices = "formetl.choices"
)

// ArrowSchema returns the Arrow schema of the columns, in order. Every field is
// nullable (a result may lack any field, and files of several runs are read
// together) and carries MetaFrom, MetaLabel and, for CSV, MetaListAs and
// MetaChoices. The columns must be valid.
func ArrowSchema(columns []Column) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	names := ChoiceNames(columns)
	for i, c := range columns {
		fields[i] = c.arrow(names[i])
	}
	return arrow.NewSchema(fields, nil)
}

// arrow returns the column's field. choices are the names of its choices.
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

// Places gives the index of the first column of each source. It suits many
// look-ups, because Find searches all columns each time.
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
