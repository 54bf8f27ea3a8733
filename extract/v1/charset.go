package v1

import (
	"bytes"
	"cmp"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

// charset is a character encoding of answers. US-ASCII is read as UTF-8, of which it is a part.
type charset string

const (
	charsetNone    charset = "" // no charset is stated
	charsetUTF8    charset = "utf-8"
	charsetLatin1  charset = "iso-8859-1" // the standard's: 0x80 to 0x9f are control characters
	charsetUnknown charset = "?"          // a charset is stated, but neither of the two above
)

// charsetOf returns the charset with a label, in any letter case. Labels are IANA's names and usual
// other spellings.
func charsetOf(label string) charset {
	label = strings.TrimSpace(label)
	is := func(name string) bool { return strings.EqualFold(label, name) }
	switch {
	case label == "":
		return charsetNone
	case slices.ContainsFunc([]string{"utf-8", "utf8", "us-ascii", "ascii"}, is):
		return charsetUTF8
	case slices.ContainsFunc([]string{"iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "l1"}, is):
		return charsetLatin1
	}
	return charsetUnknown
}

// mediaType is the content of a Content-Type header.
type mediaType struct {
	header  string // the header as the server sent it
	label   string // the label of the charset
	charset charset
	html    bool
}

// parseMediaType reads a Content-Type header. A header that cannot be parsed states nothing.
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

// pick chooses the encoding of a body without a byte order mark. The Content-Type (header) decides
// (RFC 7303, section 3), then the XML declaration (declared), and without either it is UTF-8. If
// the two disagree and one is UTF-8, the bytes decide: proxies add a wrong charset, and text in
// another encoding is hardly ever valid UTF-8.
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

// latin1ToUTF8 converts text from ISO-8859-1, whose bytes are Unicode code points, and appends it
// to dst.
func latin1ToUTF8(dst, text []byte) []byte {
	for _, b := range text {
		dst = utf8.AppendRune(dst, rune(b))
	}
	return dst
}

// declaredCharset returns the label of the encoding in the XML declaration at the start of
// text, nil without a declaration or encoding.
func declaredCharset(text []byte) (label []byte) {
	if !bytes.HasPrefix(text, []byte("<?xml")) || len(text) < 6 || !isSpace(text[5]) {
		return nil
	}
	declaration, _, whole := bytes.Cut(text, []byte("?>")) // the scanner reports a truncated declaration
	_, rest, _ := bytes.Cut(declaration, []byte("encoding"))
	rest = bytes.TrimLeft(rest, page.Blanks+"=")
	if !whole || len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return nil
	}
	label, _, _ = bytes.Cut(rest[1:], rest[:1])
	return label
}
