package v1

import (
	"bytes"
	"cmp"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/formetl/formetl/extract/page"
)

// charset is a character encoding that answers may have.
type charset uint8

const (
	charsetNone charset = iota // not stated
	charsetUTF8
	charsetLatin1  // ISO-8859-1 as the standard has it: 0x80 to 0x9f are control characters
	charsetLatin9  // ISO-8859-15
	charsetWindows // windows-1252
	charsetUnknown // stated, and not one of these
)

// charsetLabels are the names of the charsets that are read (IANA's, and
// usual spellings). US-ASCII is read as UTF-8, which contains it.
var charsetLabels = [...][]string{
	charsetNone:    {""},
	charsetUTF8:    {"utf-8", "utf8", "us-ascii", "ascii"},
	charsetLatin1:  {"iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "l1"},
	charsetLatin9:  {"iso-8859-15", "iso8859-15", "iso_8859-15", "latin9", "latin-9"},
	charsetWindows: {"windows-1252", "cp1252", "x-cp1252"},
}

// charsetOf returns the charset with a label, in any letter case.
func charsetOf(label string) charset {
	label = strings.TrimSpace(label)
	for c, names := range charsetLabels {
		for _, name := range names {
			if strings.EqualFold(label, name) {
				return charset(c)
			}
		}
	}
	return charsetUnknown
}

// mediaType is what a Content-Type header says.
type mediaType struct {
	header  string // as it was sent
	label   string // of the charset
	charset charset
	html    bool
}

// parseMediaType reads a Content-Type header. One that cannot be parsed says nothing.
func parseMediaType(header string) mediaType {
	m := mediaType{header: header}
	kind, params, err := mime.ParseMediaType(header)
	if err != nil {
		return m
	}
	m.label = params["charset"]
	m.charset = charsetOf(m.label)
	m.html = kind == "text/html" || kind == "application/xhtml+xml"
	return m
}

// pick chooses the encoding of a body without a byte order mark. The
// Content-Type decides (RFC 7303, section 3), else the XML declaration, else it
// is UTF-8. If the two disagree and one is UTF-8, the bytes decide. Proxies add
// a wrong charset, and other text is hardly ever valid UTF-8.
func pick(header, declared charset, body []byte) charset {
	switch {
	case header == charsetNone:
		return cmp.Or(declared, charsetUTF8)
	case declared == charsetNone, declared == charsetUnknown, header == declared:
		return header
	case header == charsetUTF8 && !utf8.Valid(body):
		return declared
	case declared == charsetUTF8 && utf8.Valid(body):
		return declared
	}
	return header
}

// toUTF8 converts text from c, which is not UTF-8, and appends it to dst. A
// byte that c does not define becomes the control character with that number,
// as in ISO-8859-1.
func (c charset) toUTF8(dst, text []byte) []byte {
	table := [...]*charmap.Charmap{charsetLatin1: charmap.ISO8859_1, charsetLatin9: charmap.ISO8859_15, charsetWindows: charmap.Windows1252}[c]
	for _, b := range text {
		if b < utf8.RuneSelf {
			dst = append(dst, b)
			continue
		}
		r := table.DecodeByte(b)
		if r == utf8.RuneError {
			r = rune(b)
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// declaredCharset returns the label of the encoding in the XML declaration at the start of
// text, nil without one.
func declaredCharset(text []byte) (label []byte) {
	if !bytes.HasPrefix(text, []byte("<?xml")) || len(text) < 6 || !isSpace(text[5]) {
		return nil
	}
	declaration, _, whole := bytes.Cut(text, []byte("?>")) // the scanner reports one that is truncated
	_, rest, _ := bytes.Cut(declaration, []byte("encoding"))
	rest = bytes.TrimLeft(rest, page.Blanks+"=")
	if !whole || len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return nil
	}
	label, _, _ = bytes.Cut(rest[1:], rest[:1])
	return label
}
