package definition

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Notes are the comments of a schema file. Each text takes one line, whatever
// characters it holds.
type Notes struct {
	Head    []string   // above everything
	Columns [][]string // above each column, by the column's index; missing entries are no comments
}

func (w *schemaWriter) comments(indent string, texts []string) {
	for _, text := range texts {
		w.line(strings.TrimRight(indent+"# "+printable(text), " "))
	}
}

// printable replaces characters that are not shown by Go's escapes, such as line
// breaks and characters that reverse the direction of text.
func printable(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[i : i+size])
		} else {
			quoted := strconv.Quote(text[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}
