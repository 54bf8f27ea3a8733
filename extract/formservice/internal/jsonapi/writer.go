package jsonapi

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// spelling is one of the ways to write the same text in JSON.
type spelling uint8

const (
	shortly spelling = iota // escapes where JSON needs them
	slashed                 // and \/
	lower                   // \u00e9 beyond ASCII
	upper                   // \u00E9 beyond ASCII, \u0022 for a quote
)

// spellingOf varies the spelling from result to result.
func spellingOf(id int64) spelling {
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

// Writer appends JSON to a buffer.
type Writer struct {
	Buf     []byte
	latin1  bool   // ISO-8859-1, with escapes for what it does not have
	control string // how characters are written that XML forbids: raw, ref or ""
	spell   spelling
}

// NewWriter returns a writer that appends to buf from its beginning. Characters
// that XML 1.0 forbids become U+FFFD, or stand raw or as ref, by control.
func NewWriter(buf []byte, latin1 bool, control string) *Writer {
	return &Writer{Buf: buf[:0], latin1: latin1, control: control}
}

// Charset is the charset to be named, "" for that of JSON.
func (w *Writer) Charset() string {
	if w.latin1 {
		return "ISO-8859-1"
	}
	return ""
}

// finish ends the document and gives it the writer's encoding.
func (w *Writer) finish() {
	w.Buf = append(w.Buf, '\n')
	if !w.latin1 {
		return
	}
	out := w.Buf[:0] // never longer than what was read so far
	for i := 0; i < len(w.Buf); {
		r, size := utf8.DecodeRune(w.Buf[i:])
		if r == utf8.RuneError && size == 1 { // a raw byte
			r = rune(w.Buf[i])
		}
		out = append(out, byte(r))
		i += size
	}
	w.Buf = out
}

// comma separates from what stands before, within an object or array.
func (w *Writer) comma() {
	if n := len(w.Buf); n > 0 && strings.IndexByte("{[:", w.Buf[n-1]) < 0 {
		w.Buf = append(w.Buf, ',')
	}
}

// open begins an object or array, where a value may stand.
func (w *Writer) open(bracket byte) {
	w.comma()
	w.Buf = append(w.Buf, bracket)
}

// close ends an object or array.
func (w *Writer) close(bracket byte) { w.Buf = append(w.Buf, bracket) }

// key writes the name of a member, whose value must follow.
func (w *Writer) key(name string) {
	w.text(name)
	w.Buf = append(w.Buf, ':')
}

func (w *Writer) member(name, value string) {
	w.key(name)
	w.text(value)
}

func (w *Writer) numberMember(name string, value int64) {
	w.key(name)
	w.Buf = strconv.AppendInt(w.Buf, value, 10)
}

// text writes a string.
func (w *Writer) text(s string) {
	w.comma()
	w.Buf = append(w.Buf, '"')
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && plain(s[i]) {
			i++
		}
		w.Buf = append(w.Buf, s[start:i]...)
		if i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		w.char(r, s[i:i+size])
		i += size
	}
	w.Buf = append(w.Buf, '"')
}

// plain tells whether a byte stands for itself in every spelling.
func plain(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '/'
}

// char writes one character that is not plain; text is as it stood.
func (w *Writer) char(r rune, text string) {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		if w.control == "raw" {
			w.Buf = append(w.Buf, text...)
			return
		}
		w.character(utf8.RuneError)
	case r == '/' && w.spell != slashed:
		w.Buf = append(w.Buf, '/')
	case r == '"' && w.spell == upper:
		w.escape(r)
	case r == '"' || r == '\\' || r == '/':
		w.Buf = append(w.Buf, '\\', byte(r))
	case r == '\n' || r == '\r' || r == '\t':
		w.lineEnd(r)
	case r < ' ' || r == 0xfffe || r == 0xffff:
		w.forbidden(r, text)
	default:
		w.character(r)
	}
}

func (w *Writer) lineEnd(r rune) {
	if w.spell == lower {
		w.escape(r)
		return
	}
	w.Buf = append(w.Buf, '\\', map[rune]byte{'\n': 'n', '\r': 'r', '\t': 't'}[r])
}

// forbidden writes a character that XML 1.0 does not allow.
func (w *Writer) forbidden(r rune, text string) {
	switch w.control {
	case "raw":
		w.Buf = append(w.Buf, text...)
	case "ref":
		w.escape(r)
	default:
		w.character(utf8.RuneError)
	}
}

// character writes a character as it is where encoding and spelling allow it.
func (w *Writer) character(r rune) {
	foreign := w.latin1 && (r > 0xff || r >= 0x80 && r < 0xa0)
	if r < utf8.RuneSelf || !foreign && w.spell != lower && w.spell != upper {
		w.Buf = utf8.AppendRune(w.Buf, r)
		return
	}
	w.escape(r)
}

// escape writes \u and four digits, twice for a character beyond U+FFFF.
func (w *Writer) escape(r rune) {
	if r > 0xffff {
		r -= 0x10000
		w.escape(0xd800 + r>>10)
		r = 0xdc00 + r&0x3ff
	}
	digits := "0123456789abcdef"
	if w.spell == upper {
		digits = "0123456789ABCDEF"
	}
	w.Buf = append(w.Buf, '\\', 'u', digits[r>>12], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
