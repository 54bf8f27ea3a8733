package codebook

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/formetl/formetl/load"
)

// mostCellText is how much text a cell of a spreadsheet holds, in UTF-16 units. Room
// is left for the note that something was left out.
const mostCellText = 32_767 - 64

// table gives the bytes of <name>.codebook.csv: a row for each column. People open
// it in a spreadsheet, so it is written as the CSV profile excel is.
func (b *Book) table() []byte {
	var out bytes.Buffer
	out.WriteString("\uFEFF")
	line := func(fields ...string) {
		for i, field := range fields {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(tableField(field))
		}
		out.WriteString("\r\n")
	}
	line("column", "type", "from", "label", "item_type", "choices", "rows", "nulls", "pii")
	for _, c := range b.Columns {
		line(c.Name, c.Type, c.From, c.Label, c.ItemType, c.choicesCell(),
			strconv.FormatInt(c.Rows, 10), strconv.FormatInt(c.Nulls, 10), c.PII)
	}
	return out.Bytes()
}

// choicesCell lists the choices with their counts.
func (c *Column) choicesCell() string {
	if c.ManyChoices {
		return "too many to list"
	}
	list := make([]string, len(c.Choices))
	for i, choice := range c.Choices {
		list[i] = fmt.Sprintf("%s (%d)", choice.Value, choice.Count)
	}
	return joinedCell(list)
}

// joinedCell joins texts as CSV files join lists, but with blanks for people. Texts
// that the cell cannot hold are left out and counted.
func joinedCell(list []string) string {
	var cell strings.Builder
	size := 0
	for i, s := range list {
		s = listEscapes.Replace(s)
		if i > 0 {
			s = " | " + s
		}
		if size += len(utf16.Encode([]rune(s))); size > mostCellText {
			fmt.Fprintf(&cell, " | … and %d more", len(list)-i)
			break
		}
		cell.WriteString(s)
	}
	return cell.String()
}

var listEscapes = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// tableField is a field of the table. It is quoted where CSV or a spreadsheet needs
// that, and written so that no spreadsheet takes it for a formula.
func tableField(s string) string {
	s = load.ForSheets(s)
	if strings.ContainsAny(s, ",;\t\"\r\n") {
		s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
