package formservice

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// xmlWriter appends XML to buf.
type xmlWriter struct {
	buf     []byte
	latin1  bool   // beyond U+00FF, and for U+0080 to U+009F: references only
	control string // how forbidden characters are written: raw, ref or "" for U+FFFD
	root    string
}

func newXMLWriter(f *faults) *xmlWriter {
	w := &xmlWriter{latin1: f.on("latin1"), control: f.text("control"), root: "fs_response"}
	if f.on("old-root") {
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
		if r == utf8.RuneError && size == 1 { // a raw byte, see the fault control
			r = rune(text[i])
		}
		out = append(out, byte(r))
		i += size
	}
	return out
}

// begin appends a start tag, but for its end. attributes are names and values by turns.
func (w *xmlWriter) begin(name string, attributes ...string) {
	w.raw("<", name)
	for i := 0; i < len(attributes); i += 2 {
		w.raw(" ", attributes[i], `="`)
		w.escape(attributes[i+1], true)
		w.raw(`"`)
	}
}

// element appends an element that holds text only.
func (w *xmlWriter) element(name, text string, attributes ...string) {
	w.begin(name, attributes...)
	w.raw(">")
	w.escape(text, false)
	w.raw("</", name, ">")
}

// allowed tells whether XML 1.0 allows a character.
func allowed(r rune) bool {
	return r >= 0x20 && r != 0xfffe && r != 0xffff || r == '\t' || r == '\n' || r == '\r'
}

// plainXML tells whether a character stands for itself everywhere.
func plainXML(r rune) bool { return r >= ' ' && r <= '~' && strings.IndexByte(`&<>"`, byte(r)) < 0 }

// escape appends a text with everything replaced that XML, the encoding or the
// normalisation of line ends and attribute values would change.
func (w *xmlWriter) escape(s string, attribute bool) {
	if strings.IndexFunc(s, func(r rune) bool { return !plainXML(r) }) < 0 {
		w.buf = append(w.buf, s...)
		return
	}
	for i, r := range s {
		if !allowed(r) && w.control == "" {
			r = utf8.RuneError
		}
		switch {
		case r == utf8.RuneError && w.control == "raw" && !strings.HasPrefix(s[i:], "\ufffd"):
			w.buf = append(w.buf, s[i]) // a byte that is not UTF-8
		case r == '&':
			w.raw("&amp;")
		case r == '<':
			w.raw("&lt;")
		case r == '>':
			w.raw("&gt;")
		case r == '"' && attribute, r == '\r', attribute && (r == '\n' || r == '\t'),
			!allowed(r) && w.control == "ref", w.latin1 && (r > 0xff || r >= 0x80 && r < 0xa0):
			w.raw("&#", strconv.Itoa(int(r)), ";")
		default:
			w.buf = utf8.AppendRune(w.buf, r)
		}
	}
}
