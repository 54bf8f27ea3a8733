package csvout

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDigits is how many significant digits of a number a spreadsheet keeps.
const maxDigits = 15

// guarded tells whether the text of a string must be kept from a spreadsheet,
// which would run it as a formula or show another text in its place. The rule
// is told in the package's comment.
func guarded[T text](s T) bool {
	if len(s) == 0 {
		return false
	}
	switch c := s[0]; {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z': // nearly all texts
		return len(s) <= maxWord && isWord(string(s))
	case c == '-':
		return !isPlainNumber(string(s))
	case c >= utf8.RuneSelf && isOther(s): // the letters of other scripts
		return beginsWithFullWidth(s)
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
	return leadsToFormula(bare) || len(bare) <= maxWord && isWord(bare) || looksLikeNumber(bare)
}

// isOther tells whether a text does not begin as a number may, with a
// currency, or with a blank.
func isOther[T text](s T) bool {
	r, _ := utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
	return !unicode.IsSpace(r) && !unicode.Is(unicode.Sc, r)
}

const (
	// maxWord is the length of the longest text of letters that is guarded,
	// "September 30, 2026" with room for blanks.
	maxWord = 32
	// maxNumber is the length from which on a text is no number: a file may
	// hold megabytes in a field, of which no more is looked at.
	maxNumber = 400
)

// leadsToFormula tells whether a text begins a formula after blanks, which
// some spreadsheets take away.
func leadsToFormula[T text](s T) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n':
			continue
		case '=', '+', '-', '@':
			return true
		}
		return beginsWithFullWidth(s[i:])
	}
	return false
}

// beginsWithFullWidth tells whether s begins with the full-width form of one
// of = + - @, which a spreadsheet in Japanese takes for it.
func beginsWithFullWidth[T text](s T) bool {
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
		return len(strings.TrimLeft(fraction, "0")) <= maxDigits
	}
	return len(whole)+len(fraction) <= maxDigits
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

// isWord tells whether a text of letters is one that a spreadsheet in English
// takes for something else: a boolean that it would write in capitals, or a
// month with a day or year.
func isWord(s string) bool {
	if bare := strings.TrimSpace(s); strings.EqualFold(bare, "true") || strings.EqualFold(bare, "false") {
		return s != "TRUE" && s != "FALSE"
	}
	return strings.ContainsAny(s, "0123456789") && isMonth(strings.ToLower(s))
}

// isMonth tells whether a text is the name of a month with one or two numbers
// beside it, and nothing else: mar 5, 5-mar, SEPT2, May 2026, march 5, 2026.
func isMonth(lower string) bool {
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' }
	start := strings.IndexFunc(lower, letter)
	if start < 0 {
		return false
	}
	name := lower[start:]
	if end := strings.IndexFunc(name, func(r rune) bool { return !letter(r) }); end >= 0 {
		name = name[:end]
	}
	rest := lower[:start] + " " + lower[start+len(name):]
	numbers := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" -/.,'", r) })
	for _, n := range numbers {
		if !isDigits(n) {
			return false
		}
	}
	return len(numbers) > 0 && len(numbers) < 3 && isMonthName(name)
}

// isMonthName tells whether a word is a month, whole or as its first letters.
func isMonthName(name string) bool {
	for _, month := range []string{
		"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
	} {
		if name == month || name == month[:3] {
			return true
		}
	}
	return name == "sept"
}
