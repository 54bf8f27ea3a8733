package page

import "unicode/utf8"

// Words of eight bytes: each byte of LowBits is 1, of HighBits 0x80. Decoders find bytes with them.
const (
	LowBits  = 0x0101010101010101
	HighBits = 0x8080808080808080
)

// Allowed tells whether a page may hold a character: one that XML 1.0 allows (production
// 2), whatever format the page came in, because v1 can send no other.
func Allowed(r rune) bool {
	return r >= ' ' && r < 0xd800 || r == '\n' || r == '\t' || r == '\r' ||
		r > 0xdfff && r < 0xfffe || r > 0xffff && r <= utf8.MaxRune
}
