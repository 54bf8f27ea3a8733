package cells

import "math/bits"

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// text is a string or bytes, so that functions scan both without a copy.
type text interface{ ~string | ~[]byte }

// zeros returns a number in which the high bit of a byte is set if that byte of x is zero.
// Only the lowest set bit is reliable, because a borrow may set bits above it. Callers use
// only the lowest one.
func zeros(x uint64) uint64 { return (x - ones) &^ x & highs }

// IndexCSV returns the index of the first comma, quote, CR or LF of s, or -1. RFC 4180
// requires quotes around a field with one of these. IndexCSV scans eight bytes at a time, of
// which the last ones may be scanned twice.
func IndexCSV[T text](s T) int {
	if len(s) < 8 {
		for i := range len(s) {
			if quoted[s[i]] {
				return i
			}
		}
		return -1
	}
	for i := 0; ; i = min(i+8, len(s)-8) {
		x := load64(s, i)
		if hit := zeros(x^(ones*',')) | zeros(x^(ones*'"')) | zeros(x^(ones*'\r')) | zeros(x^(ones*'\n')); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
		if i+8 == len(s) {
			return -1
		}
	}
}

// quoted holds the bytes that IndexCSV looks for.
var quoted = [256]bool{',': true, '"': true, '\r': true, '\n': true}

// IndexJSON returns the index of the first byte of s that may need escaping in JSON, or -1: a
// control character, a quote, a backslash or a byte outside ASCII.
func IndexJSON[T text](s T) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := load64(s, i)
		// In x-ones*0x20 a byte below 0x20 borrows into its own high bit; bytes above 0x7F have
		// that bit set already.
		if hit := (x|(x-ones*0x20))&highs | zeros(x^(ones*'"')) | zeros(x^(ones*'\\')); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			return i
		}
	}
	return -1
}

// load64 returns the eight bytes of s from index i as one little-endian number. The compiler
// makes one load instruction of it.
func load64[T text](s T, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}
