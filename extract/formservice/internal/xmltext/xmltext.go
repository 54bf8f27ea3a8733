// Package xmltext writes the XML of API v1 in several spellings and encodings.
package xmltext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Spelling is one of the ways to write the same characters in XML.
type Spelling uint8

// The spellings. Named is that of everything but results.
const (
	Named   Spelling = iota // &amp;
	decimal                 // &#38;
	hex                     // &#x26;
	cdata                   // <![CDATA[&]]>, where that can hold the text
)

// SpellingOf varies the spelling from result to result.
func SpellingOf(id int64) Spelling {
	switch id % 8 {
	case 3:
		return cdata
	case 5:
		return hex
	case 6:
		return decimal
	}
	return Named
}

// Writer appends XML to Buf.
type Writer struct {
	Buf     []byte
	Spell   Spelling
	latin1  bool   // beyond U+00FF, and for U+0080 to U+009F: references only
	control string // how forbidden characters are written: raw, ref or "" for U+FFFD
	root    string
	plainly [256]bool // the bytes of text that can be copied without a look
}

// New returns a writer that appends to buf from its beginning. root is the
// name of the envelope; control is raw, ref or "" for U+FFFD.
func New(buf []byte, root string, latin1 bool, control string) Writer {
	w := Writer{Buf: buf[:0], latin1: latin1, control: control, root: root}
	for c := byte(0x20); c < 0x80; c++ {
		w.plainly[c] = c != '&' && c != '<' && c != '>' && c != '"' && c != '\''
	}
	return w
}

// Charset is the name of the encoding.
func (w *Writer) Charset() string {
	if w.latin1 {
		return "ISO-8859-1"
	}
	return "UTF-8"
}

// Raw appends markup.
func (w *Writer) Raw(parts ...string) {
	for _, p := range parts {
		w.Buf = append(w.Buf, p...)
	}
}

// Open begins the envelope. The time stamp is fixed: equal requests give equal
// bytes.
func (w *Writer) Open(status string) {
	w.Raw(`<?xml version="1.0" encoding="`, w.Charset(), "\"?>\n<", w.root, ` status="`, status, `" timestamp="2026-01-01 00:00:00">`, "\n")
}

// Close ends the envelope and returns the bytes in the writer's encoding.
func (w *Writer) Close() []byte {
	w.Raw("</", w.root, ">\n")
	if !w.latin1 {
		return w.Buf
	}
	out := w.Buf[:0] // never longer than what was read so far
	for i := 0; i < len(w.Buf); {
		r, size := utf8.DecodeRune(w.Buf[i:])
		if r == utf8.RuneError && size == 1 { // a raw byte, see Faults.Control
			r = rune(w.Buf[i])
		}
		out = append(out, byte(r))
		i += size
	}
	w.Buf = out
	return w.Buf
}

// Attribute appends one attribute with a blank before it.
func (w *Writer) Attribute(name, value string) {
	w.Buf = append(w.Buf, ' ')
	w.Buf = append(w.Buf, name...)
	w.Buf = append(w.Buf, '=', '"')
	w.Escape(value, true)
	w.Buf = append(w.Buf, '"')
}

// Element appends an element that holds text only.
func (w *Writer) Element(name, text string) {
	w.Raw("<", name, ">")
	w.Escape(text, false)
	w.Raw("</", name, ">")
}

// Number appends an element that holds a number.
func (w *Writer) Number(name string, n int) {
	w.Raw("<", name, ">")
	w.Buf = strconv.AppendInt(w.Buf, int64(n), 10)
	w.Raw("</", name, ">")
}

// Text appends an element's text in the writer's spelling.
func (w *Writer) Text(s string) {
	if w.Spell == cdata && strings.ContainsAny(s, `&<>"`) && w.plain(s) {
		w.Raw("<![CDATA[", strings.ReplaceAll(s, "]]>", "]]]]><![CDATA[>"), "]]>")
		return
	}
	w.Escape(s, false)
}

// plain tells whether a text needs no references but those of XML's markup.
func (w *Writer) plain(s string) bool {
	for i, r := range s {
		if r == '\r' || !Allowed(r) || w.latin1 && r >= 0x80 {
			return false
		}
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return false
		}
	}
	return true
}

// Allowed tells whether XML 1.0 allows a character.
func Allowed(r rune) bool {
	return r >= 0x20 && r != 0xfffe && r != 0xffff || r == '\t' || r == '\n' || r == '\r'
}

// Escape appends a text with everything replaced that XML, the encoding or the
// normalisation of line ends and attribute values would change.
func (w *Writer) Escape(s string, attribute bool) {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && w.plainly[s[i]] {
			i++
		}
		w.Buf = append(w.Buf, s[start:i]...)
		if i == len(s) {
			return
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		w.char(r, s[i:i+size], attribute)
		i += size
	}
}

// char appends one character that is not plain; text is as it stood.
func (w *Writer) char(r rune, text string, attribute bool) {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		if w.control == "raw" {
			w.Raw(text)
			return
		}
		w.reference(utf8.RuneError)
	case r == '&' || r == '<' || r == '>' || r == '"' && attribute:
		w.markup(r)
	case r == '"' || r == '\'':
		if w.Spell == Named {
			w.Raw(text)
			return
		}
		w.markup(r)
	case r == '\r', attribute && (r == '\n' || r == '\t'):
		w.Raw("&#", strconv.Itoa(int(r)), ";")
	case !Allowed(r):
		w.forbidden(r, text)
	case w.latin1 && (r > 0xff || r >= 0x80 && r < 0xa0):
		w.reference(r)
	default:
		w.Raw(text)
	}
}

// forbidden appends a character that XML 1.0 does not allow.
func (w *Writer) forbidden(r rune, text string) {
	switch w.control {
	case "raw":
		w.Raw(text)
	case "ref":
		w.Raw("&#", strconv.Itoa(int(r)), ";")
	default:
		w.char(utf8.RuneError, "\ufffd", false)
	}
}

// reference appends a character reference where the encoding needs one.
func (w *Writer) reference(r rune) {
	if !w.latin1 {
		w.Buf = utf8.AppendRune(w.Buf, r)
		return
	}
	w.Raw("&#", strconv.Itoa(int(r)), ";")
}

// markup appends one of the five characters that have names.
func (w *Writer) markup(r rune) {
	switch w.Spell {
	case decimal:
		w.Raw("&#", strconv.Itoa(int(r)), ";")
	case hex:
		w.Raw(fmt.Sprintf("&#x%X;", r))
	default:
		w.Raw(map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&quot;", '\'': "&apos;"}[r])
	}
}
