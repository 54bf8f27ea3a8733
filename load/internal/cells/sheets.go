package cells

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of spreadsheets: each is the lowest of Excel, LibreOffice and Google Sheets.
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
func Units[T text](s T) int {
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
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// negative matches a plain negative number, which is no formula.
var negative = regexp.MustCompile(`^-\d+(\.\d+)?$`)

// Guarded tells whether a text needs a ' in front, because a spreadsheet would run it as a
// formula. It does if it begins with = + - or @, in ASCII or full width, perhaps after blanks,
// which some spreadsheets remove. It also does if it begins with TAB, CR or LF. A plain
// negative number needs none.
func Guarded[T text](s T) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		switch {
		case r == '-' && i == 0:
			return !negative.MatchString(string(s))
		case strings.ContainsRune("=+-@＝＋－＠", r):
			return true
		case i == 0 && strings.ContainsRune("\t\r\n", r):
			return true
		case !unicode.IsSpace(r):
			return false
		}
		i += size
	}
	return false
}
