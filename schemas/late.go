package schemas

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Late returns the column that "unknown: add" appends for a field that first appears
// after the schema was made. The column depends on the arguments alone. So windows that
// are read in any order agree on it, as do parts that are written separately. For that
// reason its type t is that of all columns from such a source, and never a list. Its name is
// made without a look at other columns, unlike the name of an inferred column:
//
//   - A meta has its id.
//   - An item has ItemName, or by another naming its label with the id: full_name_12, or
//     Full name (12).
//   - Typed texts have the name of their item with "_other"; but see Schema.Late.
//   - A hash of the source follows if ids of two fields could give one name. For items
//     that is an id with characters other than a-z, 0-9 and "-". For metas it is an id
//     with others than a-z, 0-9 and "_", or one that begins with "item_".
//
// Merge resolves the remaining case: a name that another column already has.
func Late(from Source, t Type, label string, naming Naming) Column {
	c := Column{From: from, Type: t, Label: label, Inferred: true}
	switch from.Kind {
	case FromItem:
		c.Name = lateItem(from.ID, label, naming)
		if !only(from.ID, '-') {
			c.Name = hashed(c.Name, from)
		}
	case FromMeta:
		c.Name = MetaName(from.ID)
		if !only(from.ID, '_') || strings.HasPrefix(from.ID, "item_") {
			c.Name = hashed(c.Name, from)
		}
	case FromOther:
		return Late(from.Item(), t, label, naming).Typed(naming)
	default:
		c.Name = resultID
	}
	return c
}

// Late returns what the function Late returns, for a field that the schema s does not list. But
// texts that were typed beside an item that it lists are named after the item's column in s.
func (s *Schema) Late(from Source, t Type, label string, naming Naming) Column {
	if at := s.Find(from.Item()); at >= 0 {
		item := s.Columns[at]
		item.Label = cmp.Or(item.Label, label)
		return item.Typed(naming)
	}
	return Late(from, t, label, naming)
}

func lateItem(id, label string, naming Naming) string {
	name := ItemName(id)
	words := snake(label)
	tail := strings.TrimPrefix(name, "item")
	if heading := spoken(label); naming == ByHeading && heading != "" {
		return fmt.Sprintf("%s (%s)", Cut(heading, MaxHeading-MaxName), tail[1:])
	}
	if naming != ByLabel || words == "" || len(tail) >= MaxName {
		return name
	}
	return strings.TrimRight(Cut(words, MaxName-len(tail)), "_") + tail
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

// Merge returns base and, after it, the added columns whose source base lacks, in order. Of
// several added columns with one source the first wins. An added name that is taken (in any
// letter case) gets a hash of the column's source. The hash is the same in every merge with
// the same base. Added columns of typed texts get the pii rule of their item's column, which
// manifests do not tell. The arguments stay unchanged.
func Merge(base []Column, added ...[]Column) []Column {
	out := slices.Clone(base)
	sources, names := make(map[Source]PII, len(base)), make(map[string]bool, len(base))
	for _, c := range base {
		sources[c.From], names[strings.ToLower(c.Name)] = c.PII, true
	}
	for _, columns := range added {
		for _, c := range columns {
			if _, known := sources[c.From]; known {
				continue
			}
			if rule, known := sources[c.From.Item()]; known { // the texts of an item
				c.PII = rule
			}
			c.Name = free(c, names)
			sources[c.From], names[strings.ToLower(c.Name)] = c.PII, true
			out = append(out, c)
		}
	}
	return out
}

// free returns the column's name, with a hash of its source appended if the name is taken. A
// number follows if the name with the hash is taken too.
func free(c Column, taken map[string]bool) string {
	if !taken[strings.ToLower(c.Name)] {
		return c.Name
	}
	u := Uniquer{taken: taken}
	return u.Name(hashed(c.Name, c.From))
}

// ChoiceNames returns the names of the columns that CSV makes for the choices
// of each column. The names are in the order of Choices, or nil if the column's
// ListAs is not ListColumns. A name is the column's, "__" and the choice in
// snake case. A name longer than MaxName is cut and ends with a hash. If
// choices of one column would share a name, they are numbered in their order.
// No choice takes the name of a column. So a name depends on its column and on
// the choices before it, and choices that are appended later change no name.
func ChoiceNames(columns []Column) [][]string {
	names := make([][]string, len(columns))
	var unique Uniquer
	for _, c := range columns {
		unique.Name(c.Name)
	}
	for i, c := range columns {
		if c.ListAs != ListColumns {
			continue
		}
		for _, choice := range c.Choices {
			names[i] = append(names[i], unique.Name(choiceName(c.Name, choice)))
		}
	}
	return names
}

// choiceName returns the name of the column for a choice, before the name is made unique. The
// part from the choice holds no "__" and does not begin with "_". So choices of two columns
// share no name unless it is cut, and then a hash tells them apart.
func choiceName(column, choice string) string {
	words := strings.TrimLeft(snake(choice), "_") // snake puts a "_" before a leading digit
	if words == "" {
		words = "choice"
	}
	name := column + "__" + words
	if len(name) <= MaxName {
		return name
	}
	return hashed(name, Source{Kind: FromItem, ID: column + "\x00" + choice})
}

// choicePairs returns the text of MetaChoices: the choices with the names of their columns.
func (c Column) choicePairs(names []string) string {
	pairs := make([][2]string, len(names))
	for i, name := range names {
		pairs[i] = [2]string{c.Choices[i], name}
	}
	data, _ := json.Marshal(pairs) // marshalling strings gives no error
	return string(data)
}

// Names are the names that columns have, by their sources.
type Names map[Source]string

// Keep gives the columns the names that they have in n. Another column with such a name gets a
// hash of its source, as in Merge.
func (n Names) Keep(columns []Column) {
	var kept, others []Column
	for _, c := range columns {
		if name, named := n[c.From]; named {
			c.Name = name
			kept = append(kept, c)
		} else {
			others = append(others, c)
		}
	}
	all := &Schema{Columns: Merge(kept, others)}
	for i, c := range columns {
		columns[i].Name = all.Columns[all.Find(c.From)].Name
	}
}
