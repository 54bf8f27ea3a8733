package v2

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

// textEnd returns the offset of the first byte of b from i that does not stand for itself
// in a string: a quote, a backslash or a control character. It is len(b) without one.
func textEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := w^'"'*page.LowBits, w^'\\'*page.LowBits
		// The lowest set bit is the highest bit of the first such byte.
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
// place, which never makes it longer (see clean).
func (s *scanner) text(start int) (page.Span, error) {
	i := textEnd(s.buf, start)
	if i < len(s.buf) && s.buf[i] == '"' {
		s.pos = i + 1
		return page.Span{Start: int32(start), End: int32(i)}, nil
	}
	return s.decodeText(start, i)
}

// decodeText reads the rest of a string. The first byte that is not plain is at i.
func (s *scanner) decodeText(start, i int) (page.Span, error) {
	for w := i; ; {
		if i >= len(s.buf) {
			return page.Span{}, s.truncated()
		}
		switch c := s.buf[i]; {
		case c == '"':
			s.pos = i + 1
			return page.Span{Start: int32(start), End: int32(w)}, nil
		case c != '\\':
			return page.Span{}, s.fail(i, "a control character inside a string")
		}
		r, n, err := s.escape(i)
		if err != nil {
			return page.Span{}, err
		}
		if !page.Allowed(r) {
			s.replaced++
			r = utf8.RuneError
		}
		s.rewrote = true
		w += utf8.EncodeRune(s.buf[w:], r)
		i += n
		next := textEnd(s.buf, i)
		w += copy(s.buf[w:], s.buf[i:next])
		i = next
	}
}

// skipText reads the string at pos without decoding it.
func (s *scanner) skipText() error {
	for i := textEnd(s.buf, s.pos+1); i < len(s.buf); i = textEnd(s.buf, i) {
		switch c := s.buf[i]; {
		case c == '"':
			s.pos = i + 1
			return nil
		case c != '\\':
			return s.fail(i, "a control character inside a string")
		}
		_, n, err := s.escape(i)
		if err != nil {
			return err
		}
		i += n
	}
	return s.truncated()
}

// escape reads the escape at i. n is its length in bytes. A surrogate without its other
// half comes back as it is.
func (s *scanner) escape(i int) (r rune, n int, err error) {
	if i+1 >= len(s.buf) {
		return 0, 0, s.truncated()
	}
	switch c := s.buf[i+1]; c {
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
		return 0, 0, s.fail(i, "a backslash that begins no escape")
	}
	r, n = hexEscape(s.buf[i:])
	switch {
	case r < 0 && i+n >= len(s.buf):
		return 0, 0, s.truncated()
	case r < 0:
		return 0, 0, s.fail(i, `a \u without four hexadecimal digits`)
	case !utf16.IsSurrogate(r):
		return r, n, nil
	}
	if low, m := hexEscape(s.buf[i+n:]); low >= 0 {
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, n + m, nil
		}
	}
	return r, n, nil
}

// hexEscape reads an escape such as \u00fc at the start of b. n is its length in bytes.
// Without four digits r is -1, and n the length of what could begin such an escape.
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

// nonCharacter begins U+FFFE and U+FFFF in UTF-8, and 62 other characters.
var nonCharacter = []byte("\xef\xbf")

// isClean tells whether a text can be decoded in place: it is UTF-8 without U+FFFE and
// U+FFFF, and holds neither \b nor \f, whose replacement is longer than they are.
func isClean(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	for rest := text; ; {
		i := bytes.Index(rest, nonCharacter)
		if i < 0 {
			break
		}
		if rest = rest[i+2:]; rest[0] >= 0xbe {
			return false
		}
	}
	i := bytes.IndexByte(text, '\\')
	return i < 0 || !bytes.Contains(text[i:], []byte(`\b`)) && !bytes.Contains(text[i:], []byte(`\f`))
}

// clean appends a text to dst so that isClean is true. What is invalid becomes U+FFFD,
// each byte for itself, and is counted. \b and \f are spelled as \u0008 and \u000c.
func clean(dst, text []byte) (cleaned []byte, replaced int) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			switch text[i+1] {
			case 'b':
				dst = append(dst, `\u0008`...)
			case 'f':
				dst = append(dst, `\u000c`...)
			default:
				if text[i+1] >= utf8.RuneSelf {
					dst = append(dst, c) // the character after it is looked at by itself
					i++
					continue
				}
				dst = append(dst, text[i:i+2]...)
			}
			i += 2
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 || !page.Allowed(r) {
				r = utf8.RuneError
				replaced++
			}
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst, replaced
}
