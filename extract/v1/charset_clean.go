package v1

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

// cleanEnd returns the offset of the first byte of b that cleanText changes. It
// is a carriage return, a character that XML 1.0 forbids, or invalid UTF-8.
func cleanEnd(b []byte) int {
	for i := 0; i < len(b); {
		for i+32 <= len(b) && printable(b[i:i+32]) {
			i += 32
		}
		for near := min(i+32, len(b)); i < near; { // few texts are long without a line end or an accent
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
	all := (v + 0x60*page.LowBits) & (w + 0x60*page.LowBits) & (x + 0x60*page.LowBits) & (y + 0x60*page.LowBits)
	return (v|w|x|y|^all)&page.HighBits == 0
}

// unclean finds the first byte of a word that is not ASCII, or a control character other
// than a line feed and a tab. The lowest set bit is the highest bit of that byte, and is the
// only one that counts. The result is 0 if there is none.
func unclean(w uint64) uint64 {
	// If all bytes are below 0x80, adding 0x60 sets the highest bit of bytes
	// from 0x20. Adding 0x7f sets it in bytes other than zero. Neither carries.
	control := ^(w + 0x60*page.LowBits)
	newline := ^((w ^ '\n'*page.LowBits) + 0x7f*page.LowBits)
	tab := ^((w ^ '\t'*page.LowBits) + 0x7f*page.LowBits)
	return (w | control&^(newline|tab)) & page.HighBits
}

// cleanText appends b to dst with normalised line ends (XML 1.0, section 2.11).
// Characters that XML 1.0 forbids, and bytes of invalid UTF-8, become U+FFFD.
// replaced counts these replacements.
func cleanText(dst, b []byte) (text []byte, replaced int) {
	for {
		n := cleanEnd(b)
		dst = append(dst, b[:n]...)
		if n == len(b) {
			return dst, replaced
		}
		b = b[n:]
		if b[0] == '\r' {
			dst = append(dst, '\n')
			b = b[1:]
			if len(b) > 0 && b[0] == '\n' {
				b = b[1:]
			}
			continue
		}
		_, size := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, utf8.RuneError)
		b = b[size:]
		replaced++
	}
}
