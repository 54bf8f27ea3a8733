package transform

import (
	"bytes"
)

// shapes counts which forms the values of a field have. A type is inferred
// only from forms that are printed back as they were read, so that nothing is
// lost. So "007", "1.50" among "1.5" and "TRUE" are no numbers and no bool here. A
// declared column would take them.
type shapes struct {
	values int // that are not empty

	numbers        numbers
	bools          int
	dates, holders int // YYYY-MM-DD; those that only hold a place
	times, skipped int // YYYY-MM-DD HH:MM:SS; those that the zone never shows
	foreign        foreign
	emails, ips    int
	phones         int
}

// numbers counts the values that are numbers, or digits.
type numbers struct {
	ints          int // whole numbers in the one way to write them
	shortest      int // digits of the shortest of them
	longest       int // and of the longest
	padded        int // digits with zeros in front
	points        int // numbers with a fraction
	leastFraction int // digits of the shortest fraction
	mostFraction  int // and of the longest
	zeros         int // fractions that end with a zero
	whole         int // most digits before the point, of ints and points
}

// add counts a value that is not empty.
func (s *shapes) add(v []byte, c *clock) {
	s.values++
	switch {
	case s.numbers.add(v), s.calendar(v, c):
	case string(v) == "true" || string(v) == "false":
		s.bools++
	default:
		s.foreign.add(v)
	}
	s.personal(v)
}

// add counts a value that is a number, or digits.
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

// calendar counts a value that is a day or a time.
func (s *shapes) calendar(v []byte, c *clock) bool {
	switch len(v) {
	case len("2006-01-02"):
		if _, reason := parseDate(v); reason != "" {
			return false
		}
		s.dates++
		if placeholder(v) {
			s.holders++
		}
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

// placeholder tells whether a date is one that programs write where they have none.
func placeholder(v []byte) bool {
	switch string(v) {
	case "0001-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1970-01-01", "9999-12-31":
		return true
	}
	return false
}

// allDigits tells whether v is digits, at least one.
func allDigits(v []byte) bool {
	for _, c := range v {
		if !digit(c) {
			return false
		}
	}
	return len(v) > 0
}

// zerosOnly tells whether v is nothing but zeros, or empty.
func zerosOnly(v []byte) bool { return len(bytes.Trim(v, "0")) == 0 }
