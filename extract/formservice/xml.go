package formservice

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spelling is one of the ways to write the same characters in XML.
type spelling uint8

const (
	named   spelling = iota // &amp;
	decimal                 // &#38;
	hex                     // &#x26;
	cdata                   // <![CDATA[&]]>, where that can hold the text
)

// spellingOf varies the spelling from result to result.
func spellingOf(id int64) spelling {
	switch id % 8 {
	case 3:
		return cdata
	case 5:
		return hex
	case 6:
		return decimal
	}
	return named
}

// writer appends XML to a buffer.
type writer struct {
	buf     []byte
	latin1  bool   // beyond U+00FF, and for U+0080 to U+009F: references only
	control string // how forbidden characters are written, see Faults.Control
	root    string
	spell   spelling
	plainly [256]bool // the bytes of text that can be copied without a look
}

func newWriter(buf []byte, f Faults) *writer {
	w := &writer{buf: buf[:0], latin1: f.Latin1, control: f.Control, root: "fs_response"}
	if f.OldRoot {
		w.root = "fs_result"
	}
	for c := byte(0x20); c < 0x80; c++ {
		w.plainly[c] = c != '&' && c != '<' && c != '>' && c != '"' && c != '\''
	}
	return w
}

// charset is the name of the encoding.
func (w *writer) charset() string {
	if w.latin1 {
		return "ISO-8859-1"
	}
	return "UTF-8"
}

// raw appends markup.
func (w *writer) raw(parts ...string) {
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
}

// open begins the envelope. The time stamp is fixed: equal requests give equal
// bytes.
func (w *writer) open(status string) {
	w.raw(`<?xml version="1.0" encoding="`, w.charset(), "\"?>\n<", w.root, ` status="`, status, `" timestamp="2026-01-01 00:00:00">`, "\n")
}

// close ends the envelope and returns the bytes in the writer's encoding.
func (w *writer) close() []byte {
	w.raw("</", w.root, ">\n")
	if !w.latin1 {
		return w.buf
	}
	out := w.buf[:0] // never longer than what was read so far
	for i := 0; i < len(w.buf); {
		r, size := utf8.DecodeRune(w.buf[i:])
		if r == utf8.RuneError && size == 1 { // a raw byte, see Faults.Control
			r = rune(w.buf[i])
		}
		out = append(out, byte(r))
		i += size
	}
	w.buf = out
	return w.buf
}

// attribute appends one attribute with a blank before it.
func (w *writer) attribute(name, value string) {
	w.buf = append(w.buf, ' ')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '=', '"')
	w.escape(value, true)
	w.buf = append(w.buf, '"')
}

// element appends an element that holds text only.
func (w *writer) element(name, text string) {
	w.raw("<", name, ">")
	w.escape(text, false)
	w.raw("</", name, ">")
}

// number appends an element that holds a number.
func (w *writer) number(name string, n int) {
	w.raw("<", name, ">")
	w.buf = strconv.AppendInt(w.buf, int64(n), 10)
	w.raw("</", name, ">")
}

// text appends an element's text in the writer's spelling.
func (w *writer) text(s string) {
	if w.spell == cdata && strings.ContainsAny(s, `&<>"`) && w.plain(s) {
		w.raw("<![CDATA[", strings.ReplaceAll(s, "]]>", "]]]]><![CDATA[>"), "]]>")
		return
	}
	w.escape(s, false)
}

// plain tells whether a text needs no references but those of XML's markup.
func (w *writer) plain(s string) bool {
	for i, r := range s {
		if r == '\r' || !allowed(r) || w.latin1 && r >= 0x80 {
			return false
		}
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return false
		}
	}
	return true
}

// allowed tells whether XML 1.0 allows a character.
func allowed(r rune) bool {
	return r >= 0x20 && r != 0xfffe && r != 0xffff || r == '\t' || r == '\n' || r == '\r'
}

// escape appends a text with everything replaced that XML, the encoding or the
// normalisation of line ends and attribute values would change.
func (w *writer) escape(s string, attribute bool) {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && w.plainly[s[i]] {
			i++
		}
		w.buf = append(w.buf, s[start:i]...)
		if i == len(s) {
			return
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		w.char(r, s[i:i+size], attribute)
		i += size
	}
}

// char appends one character that is not plain; text is as it stood.
func (w *writer) char(r rune, text string, attribute bool) {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		if w.control == "raw" {
			w.raw(text)
			return
		}
		w.reference(utf8.RuneError)
	case r == '&' || r == '<' || r == '>' || r == '"' && attribute:
		w.markup(r)
	case r == '"' || r == '\'':
		if w.spell == named {
			w.raw(text)
			return
		}
		w.markup(r)
	case r == '\r', attribute && (r == '\n' || r == '\t'):
		w.raw("&#", strconv.Itoa(int(r)), ";")
	case !allowed(r):
		w.forbidden(r, text)
	case w.latin1 && (r > 0xff || r >= 0x80 && r < 0xa0):
		w.reference(r)
	default:
		w.raw(text)
	}
}

// forbidden appends a character that XML 1.0 does not allow.
func (w *writer) forbidden(r rune, text string) {
	switch w.control {
	case "raw":
		w.raw(text)
	case "ref":
		w.raw("&#", strconv.Itoa(int(r)), ";")
	default:
		w.char(utf8.RuneError, "\ufffd", false)
	}
}

// reference appends a character reference where the encoding needs one.
func (w *writer) reference(r rune) {
	if !w.latin1 {
		w.buf = utf8.AppendRune(w.buf, r)
		return
	}
	w.raw("&#", strconv.Itoa(int(r)), ";")
}

// markup appends one of the five characters that have names.
func (w *writer) markup(r rune) {
	switch w.spell {
	case decimal:
		w.raw("&#", strconv.Itoa(int(r)), ";")
	case hex:
		w.raw(fmt.Sprintf("&#x%X;", r))
	default:
		w.raw(map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&quot;", '\'': "&apos;"}[r])
	}
}
