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

const resultID = "result_id"

// prefixes stand before the ids of sources.
var prefixes = [...]string{FromMeta: "meta:", FromItem: "item:", FromOther: "other:", FromFile: "file:"}

// String returns the source as ParseSource reads it. The zero Source gives "".
func (s Source) String() string {
	if s.Kind == FromResultID {
		return resultID
	}
	return prefixes[s.Kind] + s.ID
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
// the headings have one. The list of uploaded files has names of its own.
func (s Source) Label(headings map[string]string) (label string, listed bool) {
	if s.Kind == FromFile {
		return "", false
	}
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
	switch text {
	case resultID:
		return Source{Kind: FromResultID}, nil
	case "":
		return Source{}, fmt.Errorf("write the source of the column's values: %s", KnownSources)
	}
	for kind, prefix := range prefixes {
		id, is := strings.CutPrefix(text, prefix)
		switch {
		case prefix == "" || !is:
		case id == "":
			return Source{}, fmt.Errorf("source %q needs an id after the colon, for example %q", text, text+"1")
		default:
			return Source{Kind: SourceKind(kind), ID: id}, nil //nolint:gosec // there are few kinds
		}
	}
	return Source{}, fmt.Errorf("unknown source %q; use %s", text, KnownSources)
}

// MarshalText returns the same text as String, so that a Source may be a key of
// a JSON object.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the source as ParseSource does.
func (s *Source) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSource(string(text))
	return err
}
