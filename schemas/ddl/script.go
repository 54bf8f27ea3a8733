package ddl

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/formetl/formetl/schemas"
)

// script collects statements.
type script struct{ strings.Builder }

// line writes a line as it is.
func (s *script) line(format string, args ...any) {
	fmt.Fprintf(&s.Builder, format+"\n", args...)
}

// note writes a comment, which stays one line whatever names are in it.
func (s *script) note(format string, args ...any) {
	s.line("-- %s", oneLine(fmt.Sprintf(format, args...)))
}

// noNullLists says what becomes of a null list where arrays are never null.
func (s *script) noNullLists(t Table, engine, more string) {
	for _, c := range t.Columns {
		if c.Type.Kind == schemas.List {
			s.note("An array of %s is never null: a null list is loaded as an empty one%s.", engine, more)
			return
		}
	}
}

// items writes lines between two others, divided by commas.
func (s *script) items(open string, items []string, end string) {
	s.line("%s\n  %s\n%s", open, strings.Join(items, ",\n  "), end)
}

// oneLine replaces what would break a line or steer a terminal by blanks.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
}

// maxComment is the length of a comment in characters: BigQuery takes 1,024.
const maxComment = 1000

// comment is what a column's comment says: its label and where it comes from.
func comment(c schemas.Column) string {
	from := "(" + oneLine(c.From.String()) + ")"
	label := []rune(oneLine(c.Label))
	if room := maxComment - len([]rune(from)) - 1; len(label) > room {
		label = label[:max(room, 0)]
	}
	return strings.TrimSpace(string(label) + " " + from)
}

// doubled quotes a text by doubling the quote inside.
func doubled(quote string) func(string) string {
	return func(text string) string {
		return quote + strings.ReplaceAll(text, quote, quote+quote) + quote
	}
}

// backslashed quotes a text with a backslash before the quote and itself.
func backslashed(quote string) func(string) string {
	replacer := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	return func(text string) string { return quote + replacer.Replace(text) + quote }
}

// doubledEscaped is doubled for engines in whose literals a backslash escapes.
func doubledEscaped(text string) string {
	return doubled("'")(strings.ReplaceAll(text, `\`, `\\`))
}

// commentOn writes the comments of a table as statements.
func (d *Dialect) commentOn(s *script, t Table) {
	if t.Comment != "" {
		s.line("COMMENT ON TABLE %s IS %s;", d.table(t), d.text(oneLine(t.Comment)))
	}
	for _, c := range t.Columns {
		s.line("COMMENT ON COLUMN %s.%s IS %s;", d.table(t), d.quote(c.Name), d.text(comment(c)))
	}
}

// elem gives the element's type of a list, else the type itself.
func elem(t schemas.Type) (of schemas.Type, list bool) {
	if t.Kind == schemas.List && t.Elem != nil {
		return *t.Elem, true
	}
	return t, false
}

// scalars are an engine's types of those that are no list.
type scalars struct{ text, integer, float, boolean, date, timestamp, decimal string }

// of gives the type's name. The decimal's is a format of precision and scale.
func (n scalars) of(t schemas.Type) string {
	switch t.Kind {
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
		return fmt.Sprintf(n.decimal, t.Precision, t.Scale)
	}
	return n.text
}

// chunks divides a list into lists of at most n.
func chunks[T any](list []T, n int) [][]T {
	var out [][]T
	for len(list) > n {
		out, list = append(out, list[:n]), list[n:]
	}
	return append(out, list)
}
