package sheets

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string or bytes, so that functions take both without a copy.
type Text interface{ ~string | ~[]byte }

// negative matches a plain negative number, which is no formula.
var negative = regexp.MustCompile(`^-\d+(\.\d+)?$`)

// Guarded tells whether a text needs a ' in front, because a spreadsheet would run it
// as a formula. It does if it begins with = + - or @, in ASCII or full width, perhaps
// after blanks, which some spreadsheets remove. It does too if it begins with TAB, CR
// or LF. A plain negative number does not.
func Guarded[T Text](s T) bool {
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
