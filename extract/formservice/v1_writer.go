package formservice

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// xmlSpelling is one of the ways to write the same characters in XML.
type xmlSpelling uint8

// The spellings. named is that of everything but results.
const (
	named   xmlSpelling = iota // &amp;
	decimal                    // &#38;
	hex                        // &#x26;
	cdata                      // <![CDATA[&]]>, where that can hold the text
)

// xmlSpellingOf varies the spelling from result to result.
func xmlSpellingOf(id int64) xmlSpelling {
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

// xmlWriter appends XML to buf.
type xmlWriter struct {
	buf     []byte
	spell   xmlSpelling
	latin1  bool   // beyond U+00FF, and for U+0080 to U+009F: references only
	control string // how forbidden characters are written: raw, ref or "" for U+FFFD
	root    string
}

func newXMLWriter(f Faults) *xmlWriter {
	w := &xmlWriter{latin1: f.Latin1, control: f.Control, root: "fs_response"}
	if f.OldRoot {
		w.root = "fs_result"
	}
	return w
}

// charset is the name of the encoding.
func (w *xmlWriter) charset() string {
	if w.latin1 {
		return "ISO-8859-1"
	}
	return "UTF-8"
}

// raw appends markup.
func (w *xmlWriter) raw(parts ...string) {
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
}

// open begins the envelope. The time stamp is fixed: equal requests give equal
// bytes.
func (w *xmlWriter) open(status string) {
	w.raw(`<?xml version="1.0" encoding="`, w.charset(), "\"?>\n<", w.root, ` status="`, status, `" timestamp="2026-01-01 00:00:00">`, "\n")
}

// close ends the envelope and returns the bytes in the writer's encoding.
func (w *xmlWriter) close() []byte {
	w.raw("</", w.root, ">\n")
	if w.latin1 {
		return toLatin1(w.buf)
	}
	return w.buf
}

// toLatin1 gives a text the encoding ISO-8859-1, in place: it has no characters
// beyond U+00FF.
func toLatin1(text []byte) []byte {
	out := text[:0] // never longer than what was read so far
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 { // a raw byte, see Faults.Control
			r = rune(text[i])
		}
		out = append(out, byte(r))
		i += size
	}
	return out
}

// attribute appends one attribute with a blank before it.
func (w *xmlWriter) attribute(name, value string) {
	w.buf = append(w.buf, ' ')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '=', '"')
	w.escape(value, true)
	w.buf = append(w.buf, '"')
}

// element appends an element that holds text only.
func (w *xmlWriter) element(name, text string) {
	w.raw("<", name, ">")
	w.escape(text, false)
	w.raw("</", name, ">")
}

// number appends an element that holds a number.
func (w *xmlWriter) number(name string, n int) {
	w.raw("<", name, ">")
	w.buf = strconv.AppendInt(w.buf, int64(n), 10)
	w.raw("</", name, ">")
}

// text appends an element's text in the writer's spelling.
func (w *xmlWriter) text(s string) {
	if w.spell == cdata && strings.ContainsAny(s, `&<>"`) && w.plain(s) {
		w.raw("<![CDATA[", strings.ReplaceAll(s, "]]>", "]]]]><![CDATA[>"), "]]>")
		return
	}
	w.escape(s, false)
}

// plain tells whether a text needs no references but those of XML's markup.
func (w *xmlWriter) plain(s string) bool {
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

// plainXML tells whether a byte stands for itself in every spelling.
func plainXML(c byte) bool { return c >= 0x20 && c < 0x80 && strings.IndexByte("&<>\"'", c) < 0 }

// escape appends a text with everything replaced that XML, the encoding or the
// normalisation of line ends and attribute values would change.
func (w *xmlWriter) escape(s string, attribute bool) {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && plainXML(s[i]) {
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
func (w *xmlWriter) char(r rune, text string, attribute bool) {
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
func (w *xmlWriter) forbidden(r rune, text string) {
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
func (w *xmlWriter) reference(r rune) {
	if !w.latin1 {
		w.buf = utf8.AppendRune(w.buf, r)
		return
	}
	w.raw("&#", strconv.Itoa(int(r)), ";")
}

// markup appends one of the five characters that have names.
func (w *xmlWriter) markup(r rune) {
	switch w.spell {
	case decimal:
		w.raw("&#", strconv.Itoa(int(r)), ";")
	case hex:
		w.raw(fmt.Sprintf("&#x%X;", r))
	default:
		w.raw(map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&quot;", '\'': "&apos;"}[r])
	}
}
