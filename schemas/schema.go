package schemas

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

// SourceKind tells what a column is filled from.
type SourceKind uint8

// The sources of a column.
const (
	FromResultID SourceKind = iota + 1
	FromMeta
	FromItem
)

// Source is where a column's values come from: "result_id", "meta:ID" or
// "item:ID".
type Source struct {
	Kind SourceKind
	ID   string // the meta's or item's id; "" for the result id
}

// Column is one column of a schema.
type Column struct {
	Name    string
	From    Source
	Type    Type
	OnError OnError // "" is OnErrorReject
	Label   string  // the heading, "" where none is known
	// Inferred marks a column that nobody declared: its values never reject,
	// and several values for a string are joined as in CSV.
	Inferred bool
}

// Schema is the contract of a data set. Columns keep their order.
type Schema struct {
	Name       string
	Unknown    Unknown // "" is UnknownAdd
	MaxRejects int     // more rejected results fail the run
	Empty      Empty   // "" is EmptyKeep
	Columns    []Column
}

// DefaultMaxRejects is used where a schema file does not say max_rejects.
const DefaultMaxRejects = 100
