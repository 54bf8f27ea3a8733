package v2

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

// textEnd returns the offset of the first byte of b from i that is special in a string: a quote, a
// backslash or a control character. It is len(b) if there is none.
func textEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := w^'"'*page.LowBits, w^'\\'*page.LowBits
		// The lowest set bit of m is the highest bit of the first special byte.
		m := ((quote-page.LowBits)&^quote | (backslash-page.LowBits)&^backslash | (w-' '*page.LowBits)&^w) & page.HighBits
		if m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

// text reads the rest of a string whose content begins at start, and decodes it in
// place.
func (s *scanner) text(start int) (page.Span, error) {
	i := textEnd(s.Buf, start)
	if i < len(s.Buf) && s.Buf[i] == '"' {
		s.Pos = i + 1
		return page.Span{Start: int32(start), End: int32(i)}, nil
	}
	return s.decodeText(start, i)
}

// decodeText reads the rest of a string that begins at start. Its first special byte is at i.
func (s *scanner) decodeText(start, i int) (page.Span, error) {
	for w := i; ; {
		if i >= len(s.Buf) {
			return page.Span{}, s.Truncated()
		}
		switch c := s.Buf[i]; {
		case c == '"':
			s.Pos = i + 1
			return page.Span{Start: int32(start), End: int32(w)}, nil
		case c != '\\':
			return page.Span{}, s.Fail(i, "a control character inside a string")
		}
		r, n, err := s.escape(i)
		if err != nil {
			return page.Span{}, err
		}
		w = s.Put(w, r)
		i += n
		next := textEnd(s.Buf, i)
		w += copy(s.Buf[w:], s.Buf[i:next])
		i = next
	}
}

// skipText reads the string at s.Pos without decoding it.
func (s *scanner) skipText() error {
	for i := textEnd(s.Buf, s.Pos+1); i < len(s.Buf); i = textEnd(s.Buf, i) {
		switch c := s.Buf[i]; {
		case c == '"':
			s.Pos = i + 1
			return nil
		case c != '\\':
			return s.Fail(i, "a control character inside a string")
		}
		_, n, err := s.escape(i)
		if err != nil {
			return err
		}
		i += n
	}
	return s.Truncated()
}

// escape reads the escape at i, of n bytes. A surrogate without its other half is returned
// unchanged.
func (s *scanner) escape(i int) (r rune, n int, err error) {
	if i+1 >= len(s.Buf) {
		return 0, 0, s.Truncated()
	}
	switch c := s.Buf[i+1]; c {
	case '"', '\\', '/':
		return rune(c), 2, nil
	case 'b':
		return '\b', 2, nil
	case 'f':
		return '\f', 2, nil
	case 'n':
		return '\n', 2, nil
	case 'r':
		return '\r', 2, nil
	case 't':
		return '\t', 2, nil
	case 'u':
	default:
		return 0, 0, s.Fail(i, "a backslash that does not begin an escape")
	}
	r, n = hexEscape(s.Buf[i:])
	switch {
	case r < 0 && i+n >= len(s.Buf):
		return 0, 0, s.Truncated()
	case r < 0:
		return 0, 0, s.Fail(i, `a \u without four hexadecimal digits`)
	case !utf16.IsSurrogate(r):
		return r, n, nil
	}
	if low, m := hexEscape(s.Buf[i+n:]); low >= 0 {
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, n + m, nil
		}
	}
	return r, n, nil
}

// hexEscape reads an escape such as \u00fc at the start of b. n is its length in bytes. Without
// four digits r is -1, and n is the length of the beginning of an escape.
func hexEscape(b []byte) (r rune, n int) {
	for n = range 6 {
		if n >= len(b) {
			return -1, n
		}
		c := b[n]
		switch {
		case n == 0 && c == '\\', n == 1 && c == 'u':
		case n < 2:
			return -1, n
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return -1, n
		}
	}
	return r, 6
}

// spellings replaces the two escapes whose decoded text (U+FFFD) is longer than the escape by
// longer spellings. Both stand for characters that a page cannot hold.
var spellings = strings.NewReplacer(`\\`, `\\`, `\b`, `\u0008`, `\f`, `\u000c`)

// respell returns text with its escapes spelled so that they can be decoded in place.
func respell(text []byte) []byte {
	for rest := text; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 == len(rest) {
			return text
		}
		if c := rest[i+1]; c == 'b' || c == 'f' {
			return []byte(spellings.Replace(string(text)))
		}
		rest = rest[i+2:]
	}
}
