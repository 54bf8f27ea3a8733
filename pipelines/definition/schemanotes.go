package definition

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Notes are comments of a schema file, a text a line. Whatever a text holds
// stays within its line.
type Notes struct {
	Head    []string   // above everything
	Columns [][]string // above each column, by its index; a shorter list leaves columns without
}

func (w *schemaWriter) comments(indent string, texts []string) {
	for _, text := range texts {
		w.line(strings.TrimRight(indent+"# "+printable(text), " "))
	}
}

// printable spells characters that are not shown, such as line breaks and
// those that turn the direction of text around, as Go escapes them.
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
