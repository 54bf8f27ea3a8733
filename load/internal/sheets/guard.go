package sheets

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string or bytes, so that functions take both without a copy.
type Text interface{ ~string | ~[]byte }

// Guarded tells whether a text needs a ' in front. Without it, a spreadsheet
// would run the text as a formula or show it changed. The comment of package
// csvout gives the rule.
func Guarded[T Text](s T) bool {
	if len(s) == 0 {
		return false
	}
	switch c := s[0]; {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z': // most texts begin with a letter
		return len(s) <= maxWord && isWord(string(s))
	case c == '-':
		return !isPlainNumber(string(s))
	case c >= utf8.RuneSelf && isOther(s): // the letters of other scripts
		return beginsWithFullWidth(s) || len(s) <= maxWord && isWord(string(s))
	case c < utf8.RuneSelf && strings.IndexByte("=+@\t\r\n", c) >= 0:
		return true
	case len(s) > maxNumber:
		return leadsToFormula(s)
	}
	whole := string(s)
	bare := strings.TrimFunc(whole, unicode.IsSpace)
	if bare == whole && (isPlainNumber(whole) || isPlainTime(whole)) {
		return false
	}
	if bare != whole && isBoolean(bare) {
		return true
	}
	return leadsToFormula(bare) || len(bare) <= maxWord && (isWord(bare) || isEasternDay(bare)) || looksLikeNumber(bare)
}

// isOther tells whether a first character outside ASCII cannot begin a number.
// Only blanks and currency signs can.
func isOther[T Text](s T) bool {
	r, _ := utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
	return !unicode.IsSpace(r) && !unicode.Is(unicode.Sc, r)
}

const (
	// maxWord is the greatest length in bytes at which texts with letters are
	// checked for dates. "30 de septiembre de 2026 03:04:05" fits even with two
	// bytes for each letter.
	maxWord = 64
	// maxNumber is the greatest length in bytes at which a text is checked for
	// a number. It bounds the work for fields of megabytes.
	maxNumber = 400
)

// leadsToFormula tells whether a text is a formula once its leading blanks are
// removed, as some spreadsheets do.
func leadsToFormula[T Text](s T) bool {
	for i := 0; i < len(s); {
		switch s[i] {
		case '=', '+', '-', '@':
			return true
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		if !unicode.IsSpace(r) {
			return beginsWithFullWidth(s[i:])
		}
		i += size
	}
	return false
}

// beginsWithFullWidth tells whether s begins with the full-width form of one of
// = + - @. A spreadsheet in Japanese treats it like the plain character.
func beginsWithFullWidth[T Text](s T) bool {
	const signs = "＝＋－＠" // of three bytes each, the first 0xEF
	return len(s) >= 3 && s[0] == 0xEF && strings.Contains(signs, string(s[:3]))
}

// isPlainNumber tells whether s is a number whose value a spreadsheet keeps.
// Such a number has no leading zero or plus, digits on both sides of a point,
// and at most 15 digits. Spreadsheets may hide trailing zeros of its fraction.
func isPlainNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	switch {
	case !isDigits(whole) || point && !isDigits(fraction):
		return false
	case whole[0] == '0' && len(whole) > 1:
		return false
	case digits != s && strings.Trim(digits, "0.") == "": // -0 is shown as 0
		return false
	case whole == "0":
		return len(strings.TrimLeft(fraction, "0")) <= MaxDigits
	}
	return len(whole)+len(fraction) <= MaxDigits
}

func isDigits(s string) bool { return s != "" && leadingDigits(s) == len(s) }

// leadingDigits returns how many digits a text begins with.
func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// isPlainTime tells whether a text is a date with the year first, a time of
// day, or both. Spreadsheets of all languages read these correctly.
func isPlainTime(s string) bool {
	if day, clock, both := strings.Cut(s, " "); both {
		return matches(day, "9999-99-99") && isClock(clock)
	}
	return matches(s, "9999-99-99") || isClock(s)
}

// isClock tells whether a text is a time of day.
func isClock(s string) bool {
	if len(s) == 4 || len(s) == 7 {
		s = "0" + s
	}
	return (matches(s, "99:99") || matches(s, "99:99:99") && s[6] < '6') && s < "24" && s[3] < '6'
}

// matches tells whether s has the given form. A 9 in form stands for any digit,
// and other characters for themselves.
func matches(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		if form[i] == '9' && (s[i] < '0' || s[i] > '9') || form[i] != '9' && s[i] != form[i] {
			return false
		}
	}
	return true
}
