package transform

import (
	"bytes"
)

// shapes counts the forms of the values of a field. A type is inferred only from forms that
// are printed back as they were read, so that nothing is lost. So "007", "1.50" among "1.5"
// and "TRUE" are no numbers and no bool here, though a column that is declared as such would
// take them.
type shapes struct {
	values int // number of values that are not empty

	numbers        numbers
	bools          int
	dates          int // dates YYYY-MM-DD
	times, skipped int // times YYYY-MM-DD HH:MM:SS; times that the zone skips
	foreign        foreign
}

// numbers counts values that are numbers or digits.
type numbers struct {
	ints          int // number of whole numbers without leading zeros
	shortest      int // digits of the shortest whole number
	longest       int // digits of the longest whole number
	padded        int // number of values of digits with leading zeros
	points        int // number of values with a fraction
	leastFraction int // digits of the shortest fraction
	mostFraction  int // digits of the longest fraction
	zeros         int // number of fractions that end with a zero
	whole         int // most digits before the point, of all numbers
}

// add counts the form of a value that is not empty.
func (s *shapes) add(v []byte, c *clock) {
	s.values++
	switch {
	case s.numbers.add(v), s.calendar(v, c):
	case string(v) == "true" || string(v) == "false":
		s.bools++
	default:
		s.foreign.add(v)
	}
}

// add counts v if it is a number or digits, and tells whether it is.
func (n *numbers) add(v []byte) bool {
	digits, negative := bytes.CutPrefix(v, []byte("-"))
	point := bytes.IndexByte(digits, '.')
	whole, fraction := digits, []byte(nil)
	if point >= 0 {
		whole, fraction = digits[:point], digits[point+1:]
	}
	if !allDigits(whole) || point >= 0 && !allDigits(fraction) {
		return false
	}
	if whole[0] == '0' && len(whole) > 1 || negative && zerosOnly(whole) && zerosOnly(fraction) {
		if point < 0 && !negative {
			n.padded++
		}
		return !negative && point < 0
	}
	n.whole = max(n.whole, len(whole))
	if point < 0 {
		if n.ints == 0 || len(whole) < n.shortest {
			n.shortest = len(whole)
		}
		n.longest = max(n.longest, len(whole))
		n.ints++
		return true
	}
	if n.points == 0 || len(fraction) < n.leastFraction {
		n.leastFraction = len(fraction)
	}
	n.mostFraction = max(n.mostFraction, len(fraction))
	if fraction[len(fraction)-1] == '0' {
		n.zeros++
	}
	n.points++
	return true
}

// calendar counts v if it is a date or a time, and tells whether it is.
func (s *shapes) calendar(v []byte, c *clock) bool {
	switch len(v) {
	case len("2006-01-02"):
		if _, reason := parseDate(v); reason != "" {
			return false
		}
		s.dates++
		return true
	case len("2006-01-02 15:04:05"):
		if v[10] != ' ' {
			return false
		}
		_, skipped, reason := c.parseTimestamp(v)
		if reason != "" {
			return false
		}
		s.times++
		if skipped {
			s.skipped++
		}
		return true
	}
	return false
}

// allDigits tells whether v consists of digits, at least one.
func allDigits(v []byte) bool { return len(v) > 0 && len(bytes.Trim(v, "0123456789")) == 0 }

// zerosOnly tells whether v consists of zeros, or is empty.
func zerosOnly(v []byte) bool { return len(bytes.Trim(v, "0")) == 0 }
