// Package sheets holds the limits of spreadsheets and tells which texts a
// spreadsheet would run as a formula, for CSV and xlsx. Each limit is the lowest
// of Excel, LibreOffice and Google Sheets. Begin reading with Guarded.
package sheets

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxRows is how many rows a sheet has, including the heading.
	MaxRows = 1_048_576
	// MaxColumns is how many columns a sheet has.
	MaxColumns = 16_384
	// MaxText is how long the text of a cell may be, in UTF-16 units.
	MaxText = 32_767
	// MaxDigits is how many significant digits of a number a spreadsheet keeps.
	MaxDigits = 15
)

// Units returns the length of a text in UTF-16 units.
func Units[T ~string | ~[]byte](s T) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < utf8.RuneSelf || c >= 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0: // a character outside the basic plane: a surrogate pair
			n += 2
		}
	}
	return n
}

// Thousands returns n with commas between its thousands, such as 1,048,576.
func Thousands(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
