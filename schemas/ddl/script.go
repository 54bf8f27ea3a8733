package ddl

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// script collects SQL statements.
type script struct{ strings.Builder }

// line writes a line of the script, formatted as by fmt.
func (s *script) line(format string, args ...any) {
	fmt.Fprintf(&s.Builder, format+"\n", args...)
}

// note writes an SQL comment on one line, whatever characters its arguments hold.
func (s *script) note(format string, args ...any) {
	s.line("-- %s", plain.Line(fmt.Sprintf(format, args...)))
}

// items writes the text open, the items with commas between them, and the text end.
func (s *script) items(open string, items []string, end string) {
	s.line("%s\n  %s\n%s", open, strings.Join(items, ",\n  "), end)
}

// maxComment is the most characters of a comment in SQL. BigQuery takes 1,024.
const maxComment = 1000

// comment returns the text of a column's comment: its label and its source.
func comment(c schemas.Column) string {
	from := "(" + plain.Line(c.From.String()) + ")"
	label := []rune(plain.Line(c.Label))
	if room := maxComment - len([]rune(from)) - 1; len(label) > room {
		label = label[:max(room, 0)]
	}
	return strings.TrimSpace(string(label) + " " + from)
}

// doubled returns a function that quotes a text and doubles the quotes inside.
func doubled(quote string) func(string) string {
	return func(text string) string {
		return quote + strings.ReplaceAll(text, quote, quote+quote) + quote
	}
}

// backslashed returns a function that quotes a text and puts \ before each quote and \ inside.
func backslashed(quote string) func(string) string {
	replacer := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	return func(text string) string { return quote + replacer.Replace(text) + quote }
}

// doubledEscaped makes a literal as doubled does, for engines in whose literals a backslash
// escapes.
func doubledEscaped(text string) string {
	return doubled("'")(strings.ReplaceAll(text, `\`, `\\`))
}

// types are the names that an engine of SQL has for column types.
type types struct {
	text, integer, float, boolean, date, timestamp string

	decimal string // a format of fmt for the precision and scale of a decimal
	wide    string // as decimal, for over 29 digits before the point or 9 after; "": decimal
	list    string // a list type, where %s stands for the element's type
}

// of returns the engine's name of a column type.
func (n types) of(t schemas.Type) string {
	switch t.Kind {
	case schemas.List:
		return strings.Replace(n.list, "%s", n.of(*t.Elem), 1)
	case schemas.Int64:
		return n.integer
	case schemas.Float64:
		return n.float
	case schemas.Bool:
		return n.boolean
	case schemas.Date:
		return n.date
	case schemas.Timestamp:
		return n.timestamp
	case schemas.Decimal:
		if n.wide != "" && (t.Scale > 9 || t.Precision-t.Scale > 29) {
			return fmt.Sprintf(n.wide, t.Precision, t.Scale)
		}
		return fmt.Sprintf(n.decimal, t.Precision, t.Scale)
	}
	return n.text
}
