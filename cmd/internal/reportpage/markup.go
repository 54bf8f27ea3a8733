package reportpage

import (
	"html"
	"strconv"
	"strings"
)

// markup is the page as far as it is written. Names of elements and attributes are
// constants; texts and values of attributes are escaped.
type markup struct {
	b   strings.Builder
	ids int // of what other elements refer to
}

// open begins an element. attributes are names and values in turn. An attribute whose value
// is "" is left out.
func (m *markup) open(element string, attributes ...string) {
	m.start(element, attributes)
	m.b.WriteByte('>')
}

// void is an element without content.
func (m *markup) void(element string, attributes ...string) {
	m.start(element, attributes)
	m.b.WriteString("/>")
}

func (m *markup) start(element string, attributes []string) {
	m.b.WriteByte('<')
	m.b.WriteString(element)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] == "" {
			continue
		}
		m.b.WriteByte(' ')
		m.b.WriteString(attributes[i])
		m.b.WriteString(`="`)
		m.text(attributes[i+1])
		m.b.WriteByte('"')
	}
}

// end ends elements, the innermost first.
func (m *markup) end(elements ...string) {
	for _, e := range elements {
		m.b.WriteString("</" + e + ">")
	}
	m.b.WriteByte('\n')
}

// element is an element that holds a text.
func (m *markup) element(element, text string, attributes ...string) {
	m.start(element, attributes)
	m.b.WriteByte('>')
	m.text(text)
	m.b.WriteString("</" + element + ">")
}

// text writes a text. Characters that HTML or XML forbids are replaced.
func (m *markup) text(s string) { m.b.WriteString(html.EscapeString(strings.Map(allowed, s))) }

// allowed replaces what XML does not allow, and marks that would turn the text around them.
func allowed(r rune) rune {
	switch {
	case r == '\t', r == '\n':
		return r
	case r < ' ', r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff:
		return '\uFFFD'
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return '\uFFFD'
	}
	return r // of bytes that are not UTF-8 it is U+FFFD
}

// id returns a new id of an element.
func (m *markup) id(prefix string) string {
	m.ids++
	return prefix + strconv.Itoa(m.ids)
}

// clip cuts a text after n characters.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
