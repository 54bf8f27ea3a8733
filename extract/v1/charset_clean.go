package v1

import (
	"encoding/binary"
	"unicode/utf8"
)

// cleanEnd returns the offset of the first byte of b that cleanText changes. It
// is a carriage return, a character that XML 1.0 forbids, or invalid UTF-8.
func cleanEnd(b []byte) int {
	for i := 0; i < len(b); {
		if i+32 <= len(b) && printable(b[i:i+32]) {
			i += 32
			continue
		}
		if i+8 <= len(b) && cleanWord(binary.LittleEndian.Uint64(b[i:])) {
			i += 8
			continue
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
	return len(b)
}

// printable tells whether 32 bytes hold only ASCII characters that are no controls.
func printable(b []byte) bool {
	v, w := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	x, y := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	// If all bytes are below 0x80, adding 0x60 sets the highest bit of bytes from 0x20.
	all := (v + 0x60*lowBits) & (w + 0x60*lowBits) & (x + 0x60*lowBits) & (y + 0x60*lowBits)
	return (v|w|x|y|^all)&highBits == 0
}

// cleanWord tells whether a word holds only ASCII characters that need no change.
func cleanWord(w uint64) bool {
	// If all bytes are below 0x80, adding 0x60 sets the highest bit of bytes
	// from 0x20. Adding 0x7f sets it in bytes other than zero. Neither carries.
	control := ^(w + 0x60*lowBits)
	newline := ^((w ^ '\n'*lowBits) + 0x7f*lowBits)
	tab := ^((w ^ '\t'*lowBits) + 0x7f*lowBits)
	return (w|control&^(newline|tab))&highBits == 0
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
