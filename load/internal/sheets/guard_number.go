package sheets

import "strings"

// looksLikeNumber tells whether a spreadsheet of some language takes a text for
// a number, a date, a time or a fraction. It is called for texts that are not
// of the plain forms.
func looksLikeNumber(s string) bool {
	s, marked := unmark(closed(s))
	if i := strings.IndexAny(s, "eE"); i > 0 {
		mantissa, exponent := split(s[:i]), strings.TrimRight(strings.TrimLeft(s[i+1:], "+-"), ".,")
		return isDigits(exponent) && len(mantissa.groups) > 0 && mantissa.has(thousands)
	}
	p := split(s)
	n := len(p.groups)
	switch {
	case n == 0:
		return false
	case n == 1: // 007, 5., .5, 12345678901234567
		return len(p.between) <= 1 || marked
	case p.has(":"+thousands) && !p.has(thousands): // 1:2, 5:30.5, 12 5:30
		return n <= 4
	case marked && p.has(thousands) && p.areParts(): // 12 30 pm
		return true
	case p.has(" /") && !p.has(" "): // a fraction, or a day and a month
		return n <= 3 && p.areParts()
	case p.has("."):
		return n <= 3 || p.areThousands()
	case p.has("-/."):
		return n <= 3 && p.areParts()
	}
	// Thousands and decimals: 1,5 1.234,50 1'000 1 000
	return p.has(thousands) && (!p.has(". '\u00a0\u202f\u2019") || p.areThousands())
}

// thousands are the separators in numbers: of thousands and before a fraction.
const thousands = ".,' \u00a0\u202f\u2019"

// closed is a text without its blanks, except those between two digits and that
// before a or p (half of a day): 1 - 2, 5 e3, 5: 30.
func closed(s string) string {
	if len(s) > maxWord || !strings.ContainsAny(s, " \u00a0") {
		return s
	}
	var b strings.Builder
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	for i := 0; i < len(s); {
		n := 0
		for strings.HasPrefix(s[i+n:], " ") || strings.HasPrefix(s[i+n:], "\u00a0") {
			n += 1 + int(s[i+n]>>7) // one byte, or two
		}
		half := i+n < len(s) && strings.IndexByte("aApP", s[i+n]) >= 0
		if n > 0 && !half && (!digit(i-1) || !digit(i+n)) {
			i += n
			continue
		}
		b.WriteString(s[i : i+max(n, 1)])
		i += max(n, 1)
	}
	return b.String()
}

// behind are the characters that a spreadsheet may remove after a number: 18+,
// 5 -.
const behind = "+-: \u00a0"

// unmark removes what may stand around a number: a currency, a percent sign,
// parentheses that make it negative, half of the day, and the characters of
// behind.
func unmark(s string) (bare string, marked bool) {
	bare = strings.TrimRight(s, behind)
	bare = unbraced(bare)
	for _, mark := range []string{"$", "€", "£", "¥", "₹", "%"} {
		bare = strings.TrimSuffix(strings.TrimPrefix(bare, mark), mark)
	}
	bare = unbraced(bare) // €(5)
	for _, half := range []string{"am", "pm", " a", " p"} {
		if n := len(bare) - len(half); n > 0 && strings.EqualFold(bare[n:], half) {
			bare = bare[:n]
			break
		}
	}
	bare = strings.TrimSpace(strings.TrimRight(bare, behind))
	return strings.TrimLeft(bare, "+-"), len(bare) != len(s)
}

func unbraced(s string) string {
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		return s[1 : len(s)-1]
	}
	return s
}

// pieces are the groups of digits of a text, and all characters between and
// around them.
type pieces struct {
	groups  []string
	between string
}

// split divides a text into pieces. The result is empty if the text has a
// letter, or more groups or separators than a number has.
func split(s string) pieces {
	var p pieces
	for s != "" {
		n := len(s) - len(strings.TrimLeft(s, "0123456789"))
		if n > 0 {
			p.groups = append(p.groups, s[:n])
		} else {
			n = len(s) - len(strings.TrimLeft(s, thousands+":/-"))
			p.between += s[:n]
			if n == 0 || n > 3 {
				return pieces{}
			}
		}
		s = s[n:]
	}
	if len(p.groups) > 8 || len(p.between) > 32 {
		return pieces{}
	}
	return p
}

// has tells whether the text has no other separators than these.
func (p *pieces) has(these string) bool { return only(p.between, these) }

// only tells whether a text consists of the characters.
func only(s, characters string) bool { return strings.Trim(s, characters) == "" }

// areParts tells whether each group can be a day, a month or a year.
func (p *pieces) areParts() bool {
	for _, g := range p.groups {
		if len(g) > 4 || len(g) == 3 {
			return false
		}
	}
	return true
}

// areThousands tells whether all groups but the first have three digits. The
// first may have more, because some spreadsheets take 5000 000 for a number.
func (p *pieces) areThousands() bool {
	for _, g := range p.groups[1:] {
		if len(g) != 3 {
			return false
		}
	}
	return true
}
