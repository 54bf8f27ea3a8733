package formservice

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonSpelling is one of the ways to write the same text in JSON.
type jsonSpelling uint8

const (
	shortly jsonSpelling = iota // escapes where JSON needs them
	slashed                     // and \/
	lower                       // \u00e9 beyond ASCII
	upper                       // \u00E9 beyond ASCII, \u0022 for a quote
)

// jsonSpellingOf varies the spelling from result to result.
func jsonSpellingOf(id int64) jsonSpelling {
	switch id % 8 {
	case 3:
		return slashed
	case 5:
		return lower
	case 6:
		return upper
	}
	return shortly
}

// jsonWriter appends JSON to buf.
type jsonWriter struct {
	buf     []byte
	latin1  bool   // ISO-8859-1, with escapes for what it does not have
	control string // how characters are written that XML forbids: raw, ref or ""
	spell   jsonSpelling
}

// finish ends the document and gives it the writer's encoding.
func (w *jsonWriter) finish() {
	w.buf = append(w.buf, '\n')
	if w.latin1 {
		w.buf = toLatin1(w.buf)
	}
}

// comma separates from what stands before, within an object or array.
func (w *jsonWriter) comma() {
	if n := len(w.buf); n > 0 && strings.IndexByte("{[:", w.buf[n-1]) < 0 {
		w.buf = append(w.buf, ',')
	}
}

// open begins an object or array, where a value may stand.
func (w *jsonWriter) open(bracket byte) {
	w.comma()
	w.buf = append(w.buf, bracket)
}

// close ends an object or array.
func (w *jsonWriter) close(bracket byte) { w.buf = append(w.buf, bracket) }

// key writes the name of a member, whose value must follow.
func (w *jsonWriter) key(name string) {
	w.text(name)
	w.buf = append(w.buf, ':')
}

func (w *jsonWriter) member(name, value string) {
	w.key(name)
	w.text(value)
}

func (w *jsonWriter) numberMember(name string, value int64) {
	w.key(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

// text writes a string.
func (w *jsonWriter) text(s string) {
	w.comma()
	w.buf = append(w.buf, '"')
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && plainJSON(s[i]) {
			i++
		}
		w.buf = append(w.buf, s[start:i]...)
		if i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		w.char(r, s[i:i+size])
		i += size
	}
	w.buf = append(w.buf, '"')
}

// plainJSON tells whether a byte stands for itself in every spelling.
func plainJSON(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '/'
}

// char writes one character that is not plain; text is as it stood.
func (w *jsonWriter) char(r rune, text string) {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		if w.control == "raw" {
			w.buf = append(w.buf, text...)
			return
		}
		w.character(utf8.RuneError)
	case r == '/' && w.spell != slashed:
		w.buf = append(w.buf, '/')
	case r == '"' && w.spell == upper:
		w.escape(r)
	case r == '"' || r == '\\' || r == '/':
		w.buf = append(w.buf, '\\', byte(r))
	case r == '\n' || r == '\r' || r == '\t':
		w.lineEnd(r)
	case r < ' ' || r == 0xfffe || r == 0xffff:
		w.forbidden(r, text)
	default:
		w.character(r)
	}
}

func (w *jsonWriter) lineEnd(r rune) {
	if w.spell == lower {
		w.escape(r)
		return
	}
	w.buf = append(w.buf, '\\', map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't'}[r])
}

// forbidden writes a character that XML 1.0 does not allow.
func (w *jsonWriter) forbidden(r rune, text string) {
	switch w.control {
	case "raw":
		w.buf = append(w.buf, text...)
	case "ref":
		w.escape(r)
	default:
		w.character(utf8.RuneError)
	}
}

// character writes a character as it is where encoding and spelling allow it.
func (w *jsonWriter) character(r rune) {
	foreign := w.latin1 && (r > 0xff || r >= 0x80 && r < 0xa0)
	if r < utf8.RuneSelf || !foreign && w.spell != lower && w.spell != upper {
		w.buf = utf8.AppendRune(w.buf, r)
		return
	}
	w.escape(r)
}

// escape writes \u and four digits, twice for a character beyond U+FFFF.
func (w *jsonWriter) escape(r rune) {
	if r > 0xffff {
		r -= 0x10000
		w.escape(0xd800 + r>>10)
		r = 0xdc00 + r&0x3ff
	}
	digits := "0123456789abcdef"
	if w.spell == upper {
		digits = "0123456789ABCDEF"
	}
	w.buf = append(w.buf, '\\', 'u', digits[r>>12], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
