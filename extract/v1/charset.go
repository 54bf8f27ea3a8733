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

// charset is a character encoding that answers may have. US-ASCII is read as UTF-8, which
// contains it.
type charset string

const (
	charsetNone    charset = "" // not stated
	charsetUTF8    charset = "utf-8"
	charsetLatin1  charset = "iso-8859-1" // as the standard has it: 0x80 to 0x9f are control characters
	charsetLatin9  charset = "iso-8859-15"
	charsetWindows charset = "windows-1252"
	charsetUnknown charset = "?" // stated, and not one of these
)

// charsetLabels are the names of the charsets that are read (IANA's, and usual spellings).
var charsetLabels = map[string]charset{
	"": charsetNone, "utf-8": charsetUTF8, "utf8": charsetUTF8, "us-ascii": charsetUTF8, "ascii": charsetUTF8,
	"iso-8859-1": charsetLatin1, "iso8859-1": charsetLatin1, "iso_8859-1": charsetLatin1, "latin1": charsetLatin1, "latin-1": charsetLatin1, "l1": charsetLatin1,
	"iso-8859-15": charsetLatin9, "iso8859-15": charsetLatin9, "iso_8859-15": charsetLatin9, "latin9": charsetLatin9, "latin-9": charsetLatin9,
	"windows-1252": charsetWindows, "cp1252": charsetWindows, "x-cp1252": charsetWindows,
}

// charsetOf returns the charset with a label, in any letter case.
func charsetOf(label string) charset {
	for name, c := range charsetLabels {
		if strings.EqualFold(strings.TrimSpace(label), name) {
			return c
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
	table := map[charset]*charmap.Charmap{charsetLatin1: charmap.ISO8859_1, charsetLatin9: charmap.ISO8859_15, charsetWindows: charmap.Windows1252}[c]
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
