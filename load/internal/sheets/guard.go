package sheets

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string or bytes, which are not copied into a string first.
type Text interface{ ~string | ~[]byte }

// Guarded tells whether a text must be kept from a spreadsheet, which would run
// it as a formula or show another text in its place. The rule is told in the
// comment of package csvout.
func Guarded[T Text](s T) bool {
	if len(s) == 0 {
		return false
	}
	switch c := s[0]; {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z': // nearly all texts
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

// isOther tells whether a text does not begin as a number may, with a
// currency, or with a blank.
func isOther[T Text](s T) bool {
	r, _ := utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
	return !unicode.IsSpace(r) && !unicode.Is(unicode.Sc, r)
}

const (
	// maxWord is the length of the longest text with letters that is guarded:
	// "30 de septiembre de 2026 03:04:05", and the same in two bytes a letter.
	maxWord = 64
	// maxNumber is the length from which on a text is no number: a file may
	// hold megabytes in a field, of which no more is looked at.
	maxNumber = 400
)

// leadsToFormula tells whether a text begins a formula after blanks, which
// some spreadsheets take away.
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

// beginsWithFullWidth tells whether s begins with the full-width form of one
// of = + - @, which a spreadsheet in Japanese takes for it.
func beginsWithFullWidth[T Text](s T) bool {
	if len(s) < 3 || s[0] != 0xEF {
		return false
	}
	switch string(s[:3]) {
	case "＝", "＋", "－", "＠":
		return true
	}
	return false
}

// isPlainNumber tells whether a spreadsheet keeps a text as the number that it
// is: no leading zero or plus, digits on both sides of a point, at most 15
// digits. Its value stays, though trailing zeros of a fraction are not shown.
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

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isPlainTime tells whether a text is a date with the year first, a time of
// day, or both: all spreadsheets in all languages read them as what they are.
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

// matches tells whether s has a digit where the form has a 9, and what the
// form has elsewhere.
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
