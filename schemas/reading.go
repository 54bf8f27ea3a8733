package schemas

// Reading says how the texts of a column are read where they are not in the
// form that its type expects. The zero value is that form. For a list it is
// about the elements.
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
