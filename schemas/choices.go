package schemas

import (
	"encoding/json"
	"strings"
)

// ChoiceNames returns the names of the columns that CSV makes for the choices
// of each column. They are in the order of Choices, or nil if the column's
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

// choiceName returns the name of a choice before it is made unique. The part
// from the choice holds no "__" and does not begin with "_". So choices of two
// columns share no name unless it is cut, and then a hash tells them apart.
func choiceName(column, choice string) string {
	words := strings.TrimLeft(snake(choice), "_") // snake puts one before a digit
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
	data, _ := json.Marshal(pairs) // strings give no error
	return string(data)
}
