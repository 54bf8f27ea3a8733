package schemas

import (
	"encoding/json"
	"strings"
)

// ChoiceNames gives, for each column that CSV shows as a column for each of
// its choices (ListColumns), their names in the order of Choices; nil for the
// other columns. A name is the column's, "__" and the choice in snake case, at
// most MaxName bytes: one that would be longer is cut and ends with a hash.
// Choices of one column that would share a name are numbered in their order,
// and none takes the name of a column. So a name depends on its column and on
// the choices before it: choices that are appended later change none.
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

// choiceName is the name of a choice before it is made unique. The choice's part
// holds no "__" and does not begin with "_". So choices of two columns share no
// name unless it was cut, and then a hash tells them apart.
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

// choicePairs is MetaChoices: the choices with the names of their columns.
func (c Column) choicePairs(names []string) string {
	pairs := make([][2]string, len(names))
	for i, name := range names {
		pairs[i] = [2]string{c.Choices[i], name}
	}
	data, _ := json.Marshal(pairs) // strings give no error
	return string(data)
}
