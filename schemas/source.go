package schemas

import (
	"fmt"
	"strings"
)

// SourceKind says what kind of field a column is filled from.
type SourceKind uint8

// The kinds of sources that a column can have.
const (
	FromResultID SourceKind = iota + 1
	FromMeta
	FromItem
	FromOther // texts that people typed beside the choices of an item
	FromFile  // a column of the output that lists uploaded files; no schema has one
)

// Source says where a column's values come from: "result_id", "meta:ID", "item:ID" or
// "other:ID", in the output of uploaded files also "file:NAME".
type Source struct {
	Kind SourceKind
	ID   string // the meta's or item's id, also of FromOther; "" for the result id
}

const (
	resultID    = "result_id"
	metaPrefix  = "meta:"
	itemPrefix  = "item:"
	otherPrefix = "other:"
	filePrefix  = "file:"
)

// String returns the source as ParseSource reads it. The zero Source gives "".
func (s Source) String() string {
	switch s.Kind {
	case FromResultID:
		return resultID
	case FromMeta:
		return metaPrefix + s.ID
	case FromItem:
		return itemPrefix + s.ID
	case FromOther:
		return otherPrefix + s.ID
	case FromFile:
		return filePrefix + s.ID
	}
	return ""
}

// Item returns the source of the item beside whose choices the texts of s, an "other:ID", were
// typed. It returns any other source as it is.
func (s Source) Item() Source {
	if s.Kind == FromOther {
		s.Kind = FromItem
	}
	return s
}

// Label returns the source's label in the headings of a form, which are given by id, and whether
// the headings have one.
func (s Source) Label(headings map[string]string) (label string, listed bool) {
	label, listed = headings[s.ID]
	if s.Kind == FromOther {
		label = otherLabel(label)
	}
	return label, listed
}

// KnownSources lists the forms of a source, for messages.
const KnownSources = "result_id, meta:ID, item:ID or other:ID"

// ParseSource reads a column's source, the key "from" of schema files, such as "item:ID". It
// keeps ids as text, even if they look like numbers.
func ParseSource(text string) (Source, error) {
	var s Source
	switch {
	case text == resultID:
		return Source{Kind: FromResultID}, nil
	case strings.HasPrefix(text, metaPrefix):
		s = Source{Kind: FromMeta, ID: text[len(metaPrefix):]}
	case strings.HasPrefix(text, itemPrefix):
		s = Source{Kind: FromItem, ID: text[len(itemPrefix):]}
	case strings.HasPrefix(text, otherPrefix):
		s = Source{Kind: FromOther, ID: text[len(otherPrefix):]}
	case strings.HasPrefix(text, filePrefix):
		s = Source{Kind: FromFile, ID: text[len(filePrefix):]}
	case text == "":
		return s, fmt.Errorf("a source is required: %s", KnownSources)
	default:
		return s, fmt.Errorf("source %q is not known; a source is %s", text, KnownSources)
	}
	if s.ID == "" {
		return Source{}, fmt.Errorf("source %q lacks the id after the colon, as in %q", text, text+"1")
	}
	return s, nil
}

// MarshalText returns the same text as String, so that a Source may be a key of
// a JSON object.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the source as ParseSource does.
func (s *Source) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSource(string(text))
	return err
}
