package sheets

import "strings"

// looksLikeNumber tells whether a spreadsheet of some language takes a text for
// a number, a date, a time or a fraction. Guarded calls it only for texts that
// are not plain numbers or plain times.
func looksLikeNumber(s string) bool {
	s, marked := unmark(closed(s))
	if i := strings.IndexAny(s, "eE"); i > 0 {
		mantissa, exponent := split(s[:i]), strings.TrimRight(strings.TrimLeft(s[i+1:], "+-"), ".,")
		return isDigits(exponent) && mantissa.n > 0 && mantissa.has(thousands)
	}
	p := split(s)
	switch {
	case p.n == 0:
		return false
	case p.n == 1: // 007, 5., .5, 12345678901234567
		return p.separators <= 1 || marked
	case p.has(":"+thousands) && !p.has(thousands): // 1:2, 5:30.5, 12 5:30
		return p.n <= 4
	case marked && p.has(thousands) && p.areParts(): // 12 30 pm
		return true
	case p.has(" /") && !p.has(" "): // a fraction, or a day and a month
		return p.n <= 3 && p.areParts()
	case p.has("."):
		return p.n <= 3 || p.areThousands()
	case p.has("-/."):
		return p.n <= 3 && p.areParts()
	}
	// Thousands and decimals: 1,5 1.234,50 1'000 1 000
	return p.has(thousands) && (!p.has(". '\u00a0\u202f\u2019") || p.areThousands())
}

// thousands are the characters that may separate thousands in a number or precede its fraction.
const thousands = ".,' \u00a0\u202f\u2019"

// closed returns a text without its blanks: 1-2 for 1 - 2. It keeps those
// between two digits, and one before a or p, which stand for AM and PM.
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

// behind are the characters after a number that a spreadsheet may remove, as in
// 18+ or 5 -.
const behind = "+-: \u00a0"

// unmark returns s without what may stand around a number: a currency sign, a
// percent sign, parentheses, AM or PM, a leading sign, and the characters of
// behind. marked tells whether it removed anything but a leading sign.
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

// pieces are the groups of digits in a text, and the characters between and
// around them. The arrays keep split from allocating memory, which would make
// encoding for spreadsheets 5 % slower.
type pieces struct {
	groups     [8]string
	n          int
	between    [32]byte
	separators int // number of bytes used in between
}

// split returns the pieces of a text. The result is empty if the text has a
// letter or a separator that no number has.
func split(s string) pieces {
	var p pieces
	for s != "" {
		n := leadingDigits(s)
		if n > 0 {
			if p.n == len(p.groups) {
				return pieces{}
			}
			p.groups[p.n] = s[:n]
			p.n++
			s = s[n:]
			continue
		}
		for n < len(s) && leadingDigits(s[n:]) == 0 {
			n++
		}
		if n > 3 || p.separators+n > len(p.between) || !only(s[:n], thousands+":/-") {
			return pieces{}
		}
		p.separators += copy(p.between[p.separators:], s[:n])
		s = s[n:]
	}
	return p
}

// has tells whether all separators of the text are among these.
func (p *pieces) has(these string) bool { return only(string(p.between[:p.separators]), these) }

// only tells whether a text consists only of the given characters.
func only(s, characters string) bool { return strings.Trim(s, characters) == "" }

// areParts tells whether each group of digits can be a day, a month or a year.
func (p *pieces) areParts() bool {
	for _, g := range p.groups[:p.n] {
		if len(g) > 4 || len(g) == 3 {
			return false
		}
	}
	return true
}

// areThousands tells whether all groups of digits but the first have three digits.
// The first may have more, because some spreadsheets take 5000 000 for a number.
func (p *pieces) areThousands() bool {
	for _, g := range p.groups[1:p.n] {
		if len(g) != 3 {
			return false
		}
	}
	return true
}
