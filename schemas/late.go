package schemas

import (
	"slices"
	"strings"
)

// DefaultType is the type of a column without a schema: the result id is an
// int64, metas whose id begins with "date_" are timestamps, everything else a
// string.
func DefaultType(from Source) Type {
	switch {
	case from.Kind == FromResultID:
		return Type{Kind: Int64}
	case from.Kind == FromMeta && strings.HasPrefix(from.ID, "date_"):
		return Type{Kind: Timestamp}
	}
	return Type{Kind: String}
}

// Late returns the column that "unknown: add" appends for a field that turned
// up after the schema was made. It depends on its arguments alone. So windows that
// are read in any order agree on it, as do parts that are written separately. For
// that reason its type is DefaultType, never a list. Its name differs from that of
// an inferred column where uniqueness would need a look at other columns:
//
//   - metas: the id;
//   - items: ItemName, with labels the label in snake case, "_" and the id;
//   - where ids of two fields could give one name (an item id with characters
//     other than a-z, 0-9 and "-", a meta id with others than a-z, 0-9 and
//     "_", or one that begins with "item_"), a hash of the source follows.
//
// Merge resolves what is left: a name that the base already has.
func Late(from Source, label string, labels bool) Column {
	c := Column{From: from, Type: DefaultType(from), Label: label, Inferred: true}
	switch from.Kind {
	case FromItem:
		c.Name = lateItem(from.ID, label, labels)
		if !only(from.ID, '-') {
			c.Name = hashed(c.Name, from)
		}
	case FromMeta:
		c.Name = MetaName(from.ID)
		if !only(from.ID, '_') || strings.HasPrefix(from.ID, "item_") {
			c.Name = hashed(c.Name, from)
		}
	default:
		c.Name = resultID
	}
	return c
}

func lateItem(id, label string, labels bool) string {
	name := ItemName(id)
	if !labels {
		return name
	}
	words := snake(label)
	tail := strings.TrimPrefix(name, "item")
	if words == "" || len(tail) >= MaxName {
		return name
	}
	return strings.TrimRight(cut(words, MaxName-len(tail)), "_") + tail
}

// only tells whether s consists of a-z, 0-9 and the byte extra.
func only(s string, extra byte) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != extra {
			return false
		}
	}
	return true
}

// Merge appends to base the added columns whose source it lacks, in order:
// the union by source. A column of base stands as it is, and the first of
// several added ones with one source wins. An added name that is taken
// (letter case aside) gets a hash of its source, the same in every merge with
// that base. The arguments stay untouched.
func Merge(base []Column, added ...[]Column) []Column {
	out := slices.Clone(base)
	sources, names := make(map[Source]bool, len(base)), make(map[string]bool, len(base))
	for _, c := range base {
		sources[c.From], names[strings.ToLower(c.Name)] = true, true
	}
	for _, columns := range added {
		for _, c := range columns {
			if sources[c.From] {
				continue
			}
			c.Name = free(c, names)
			sources[c.From], names[strings.ToLower(c.Name)] = true, true
			out = append(out, c)
		}
	}
	return out
}

// free returns the column's name, with hashes until it is new. One hash suffices
// unless names were made to collide.
func free(c Column, taken map[string]bool) string {
	name := c.Name
	for taken[strings.ToLower(name)] {
		next := hashed(name, c.From)
		if next == name { // at full length hashing again changes nothing
			u := Uniquer{taken: taken}
			return u.Name(name)
		}
		name = next
	}
	return name
}
