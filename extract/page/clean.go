package page

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Blanks are the characters of white space in XML (production 3) and JSON (RFC 8259, section 2).
const Blanks = " \t\r\n"

// Mark is the byte order mark of UTF-8.
const Mark = "\xef\xbb\xbf"

// Words of eight bytes: each byte of LowBits is 1, each byte of HighBits is 0x80. Decoders use them
// to find a byte in eight at once.
const (
	LowBits  = 0x0101010101010101
	HighBits = 0x8080808080808080
)

// Allowed tells whether a page may hold a character: one that XML 1.0 allows (production 2). This
// also holds for answers in JSON, so that API v1 and v2 give the same pages.
func Allowed(r rune) bool {
	return r >= ' ' && r < 0xd800 || r == '\n' || r == '\t' || r == '\r' ||
		r > 0xdfff && r < 0xfffe || r > 0xffff && r <= utf8.MaxRune
}

// Clean replaces by U+FFFD what in Text is beyond ASCII and not allowed in a page: each byte of
// invalid UTF-8, U+FFFE and U+FFFF. Page.Replaced counts the replacements. With controls set,
// Clean also replaces control characters and normalises line ends (XML 1.0, section 2.11).
func (b *Builder) Clean(controls bool) {
	if !controls && utf8.Valid(b.Text) && !bytes.Contains(b.Text, []byte("\ufffe")) && !bytes.Contains(b.Text, []byte("\uffff")) {
		return // without controls this check suffices, and is faster than cleanEnd
	}
	n := cleanEnd(b.Text)
	if n == len(b.Text) {
		return
	}
	text, rest := b.Spare[:0], b.Text
	for ; n < len(rest); n = cleanEnd(rest) {
		text = append(text, rest[:n]...)
		c, size := rest[n], 1
		switch {
		case c < utf8.RuneSelf && !controls:
			text = append(text, c)
		case c != '\r':
			_, size = utf8.DecodeRune(rest[n:])
			text = utf8.AppendRune(text, utf8.RuneError)
			b.Page.Replaced++
		default:
			text = append(text, '\n')
			if n+1 < len(rest) && rest[n+1] == '\n' {
				size = 2
			}
		}
		rest = rest[n+size:]
	}
	text = append(text, rest...)
	b.Text, b.Spare = text, b.Text
}

// cleanEnd returns the offset of the first byte of b that Clean with controls changes: a carriage
// return, a character that XML 1.0 forbids, or invalid UTF-8. It is len(b) if there is none.
func cleanEnd(b []byte) int {
	for i := 0; i < len(b); {
		for i+32 <= len(b) && printable(b[i:i+32]) {
			i += 32
		}
		for near := min(i+32, len(b)); i < near; { // most texts soon have a line end or an accent
			if i+8 <= len(b) {
				if other := unclean(binary.LittleEndian.Uint64(b[i:])); other != 0 {
					i += bits.TrailingZeros64(other) / 8
				} else {
					i += 8
					continue
				}
			}
			c := b[i]
			if c < utf8.RuneSelf {
				if c < ' ' && c != '\n' && c != '\t' {
					return i
				}
				i++
				continue
			}
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 || r == 0xfffe || r == 0xffff {
				return i
			}
			i += n
		}
	}
	return len(b)
}

// printable tells whether 32 bytes hold only ASCII characters that are no controls.
func printable(b []byte) bool {
	v, w := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	x, y := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	// If all bytes are below 0x80, adding 0x60 sets the highest bit of bytes from 0x20.
	all := (v + 0x60*LowBits) & (w + 0x60*LowBits) & (x + 0x60*LowBits) & (y + 0x60*LowBits)
	return (v|w|x|y|^all)&HighBits == 0
}

// unclean finds the first byte of a word that is not ASCII, or is a control character other than
// line feed and tab. The lowest set bit of the result is the highest bit of that byte; the bits
// above it mean nothing. The result is 0 if there is no such byte.
func unclean(w uint64) uint64 {
	// If all bytes are below 0x80, adding 0x60 sets the highest bit of the bytes from 0x20 on, and
	// adding 0x7f that of the bytes other than zero. Neither addition carries into the next byte.
	control := ^(w + 0x60*LowBits)
	newline := ^((w ^ '\n'*LowBits) + 0x7f*LowBits)
	tab := ^((w ^ '\t'*LowBits) + 0x7f*LowBits)
	return (w | control&^(newline|tab)) & HighBits
}
