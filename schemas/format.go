package schemas

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Format is the form of the dates or timestamps of a column, compiled by
// ParseFormat. Several goroutines may use it at once.
type Format struct {
	text  string
	steps []formatStep
}

// Parts are what a Format reads from a value: a day of the calendar and a time
// of day. Parts that the format does not have are 0.
type Parts struct {
	Year, Month, Day             int // years 1 to 9999
	Hour, Minute, Second, Micros int
	Offset                       int // seconds east of UTC
	// HasOffset tells whether the value gives its offset from UTC. Without one
	// the time is a wall-clock time.
	HasOffset bool
}

// formatStep reads one part of a value, or a fixed text in it.
type formatStep struct {
	part        formatPart
	text        string // the fixed text of partText
	least, most int    // digits of a number; most is 0 for what is no number
	padded      bool   // a blank may stand for the first digit
}

// formatPart says which part of a value a step reads.
type formatPart uint8

const (
	partText formatPart = iota
	partYear
	partShortYear
	partMonth
	partMonthName
	partDay
	partWeekday
	partHour
	partHour12
	partMinute
	partSecond
	partFraction
	partHalf
	partOffset
)

// ParseFormat compiles a format. A text that holds a % is a format of C's
// strptime, as in Python and most databases:
//
//	%Y %y           year: four digits; two, where 69 to 99 are 1969 to 1999
//	%m %b %B        month: a number; an English name
//	%d %e           day of the month; %e also with a blank for the first digit
//	%a %A           the English name of the weekday, which must be the day's
//	%H %I           hour: 0 to 23; 1 to 12, with %p
//	%M %S           minute, second
//	%f              fraction of the second, one to six digits
//	%p              AM or PM
//	%z              offset: Z, +hhmm, +hh:mm or +hh
//	%F %T %R %D     %Y-%m-%d, %H:%M:%S, %H:%M, %m/%d/%y
//	%%              a percent sign
//
// Numbers without a count of digits have one or two ("%-d" is "%d").
// A text without a % is in letters, as the service's specification spells
// times (YYYY-MM-DD HH:MM:SS):
//
//	YYYY YY         year: four digits; two, as %y
//	MM M            month: two digits; one or two
//	MMM MMMM        month: an English name
//	DD D            day of the month
//	ddd dddd        the English name of the weekday, which must be the day's
//	HH H  hh h      hour: 0 to 23; 1 to 12, with A
//	mm m            minute; so are MM and M directly after the hour
//	SS S  ss s      second
//	f, ff to ffffff fraction of the second: one to six digits; as many as letters
//	A a AM PM AM/PM AM or PM (also in lower case)
//	Z ZZ            offset, as %z
//	'text' ''       the text as it stands; an apostrophe
//
// yyyy, yy, dd and d mean YYYY, YY, DD and D. T stands for itself, and other
// letters need apostrophes to do so. In both notations names are in full or have
// their first three letters. Names, AM and PM may be in any letter case. All else
// stands for itself. Numbers with nothing between them have all their digits:
// %Y%m%d reads 20260115 and nothing shorter.
//
// A format needs a year, a month and a day, and may have each part only once. A
// value fits if the format reads all of it and the day exists (Gregorian
// calendar, years 0001 to 9999). Leap seconds do not fit.
func ParseFormat(text string) (*Format, error) {
	f, err := parseFormat(text)
	if err != nil {
		return nil, fmt.Errorf("format %q: %w", text[:min(len(text), longestFormat)], err)
	}
	return f, nil
}

// longestFormat is how many bytes a format may have. It is far more than any date needs.
const longestFormat = 200

func parseFormat(text string) (*Format, error) {
	if len(text) > longestFormat {
		return nil, fmt.Errorf("it has %d bytes; %d are enough for any", len(text), longestFormat)
	}
	var w formatWriter
	percent := strings.Contains(text, "%")
	var err error
	if percent {
		err = w.directives(text)
	} else if err = goLayout(text); err == nil {
		err = w.letters(text)
	}
	if err == nil {
		err = w.check(percent)
	}
	if err != nil {
		return nil, err
	}
	w.widen()
	return &Format{text: text, steps: w.steps}, nil
}

// String returns the text that the format was compiled from.
func (f *Format) String() string { return f.text }

// HasTime tells whether the format reads a time of day or an offset.
func (f *Format) HasTime() bool {
	for _, s := range f.steps {
		if s.part == partHour || s.part == partHour12 || s.part == partOffset {
			return true
		}
	}
	return false
}

// Read returns the parts of the value v. ok tells whether the value fits the
// format. It allocates nothing.
func (f *Format) Read(v []byte) (p Parts, ok bool) {
	r := formatReader{rest: v, weekday: -1}
	for i := range f.steps {
		if !r.take(&f.steps[i]) {
			return Parts{}, false
		}
	}
	p = r.parts
	day := time.Date(p.Year, time.Month(p.Month), p.Day, 0, 0, 0, 0, time.UTC)
	if len(r.rest) > 0 || day.Day() != p.Day || r.weekday >= 0 && r.weekday != int(day.Weekday()) {
		return Parts{}, false
	}
	if r.afternoon {
		p.Hour += 12
	}
	return p, true
}

// formatReader reads one value by the steps of a format. Its methods remove what
// they have read from rest.
type formatReader struct {
	rest      []byte
	parts     Parts
	weekday   int // 0 is Sunday, -1 not given
	afternoon bool
}

func (r *formatReader) take(s *formatStep) (ok bool) {
	switch s.part {
	case partText:
		if len(r.rest) < len(s.text) || string(r.rest[:len(s.text)]) != s.text {
			return false
		}
		r.rest = r.rest[len(s.text):]
		return true
	case partMonthName:
		i := r.name(monthNames[:])
		r.parts.Month = i + 1
		return i >= 0
	case partWeekday:
		r.weekday = r.name(weekdayNames[:])
		return r.weekday >= 0
	case partHalf:
		return r.half()
	case partOffset:
		return r.offset()
	}
	n, digits := r.number(s)
	if digits < s.least {
		return false
	}
	return r.parts.set(s.part, n, digits)
}

// number reads the digits of a step. It returns the number and how many digits it has: 0 if there
// is none.
func (r *formatReader) number(s *formatStep) (n, digits int) {
	most, blank := s.most, 0
	if s.padded && len(r.rest) > 0 && r.rest[0] == ' ' {
		r.rest, most, blank = r.rest[1:], most-1, 1
	}
	for digits < most && digits < len(r.rest) && isDigit(r.rest[digits]) {
		n = n*10 + int(r.rest[digits]-'0')
		digits++
	}
	r.rest = r.rest[digits:]
	if digits == 0 {
		return 0, 0 // a blank alone is no number
	}
	return n, digits + blank
}

// set stores the number n of a part. ok tells whether the part can have that number.
func (p *Parts) set(part formatPart, n, digits int) (ok bool) {
	switch part {
	case partYear:
		p.Year = n
		return n >= 1
	case partShortYear:
		if p.Year = 2000 + n; n >= 69 {
			p.Year = 1900 + n
		}
		return true
	case partMonth:
		p.Month = n
		return n >= 1 && n <= 12
	case partDay:
		p.Day = n
		return n >= 1
	case partHour:
		p.Hour = n
		return n < 24
	case partHour12:
		p.Hour = n % 12
		return n >= 1 && n <= 12
	case partMinute:
		p.Minute = n
		return n < 60
	case partSecond:
		p.Second = n
		return n < 60
	}
	for p.Micros = n; digits < 6; digits++ { // the fraction
		p.Micros *= 10
	}
	return true
}

// name reads one of names, in full or its first three letters. It returns the
// name's index, or -1 if none fits.
func (r *formatReader) name(names []string) int {
	for i, name := range names {
		for _, n := range [...]int{len(name), 3} {
			if foldPrefix(r.rest, name[:n]) {
				r.rest = r.rest[n:]
				return i
			}
		}
	}
	return -1
}

// half reads AM or PM. ok is false if neither comes next.
func (r *formatReader) half() (ok bool) {
	r.afternoon = foldPrefix(r.rest, "pm")
	if !r.afternoon && !foldPrefix(r.rest, "am") {
		return false
	}
	r.rest = r.rest[2:]
	return true
}

// offset reads Z, +hhmm, +hh:mm or +hh. ok is false if none comes next.
func (r *formatReader) offset() (ok bool) {
	r.parts.HasOffset = true
	if rest, utc := bytes.CutPrefix(r.rest, []byte("Z")); utc {
		r.rest = rest
		return true
	}
	if len(r.rest) == 0 || r.rest[0] != '+' && r.rest[0] != '-' {
		return false
	}
	negative, two := r.rest[0] == '-', formatStep{most: 2}
	r.rest = r.rest[1:]
	hour, digits := r.number(&two)
	if digits < 2 || hour > 23 {
		return false
	}
	colon := len(r.rest) > 0 && r.rest[0] == ':'
	if colon {
		r.rest = r.rest[1:]
	}
	minute, digits := r.number(&two)
	if digits == 1 || colon && digits == 0 || minute > 59 {
		return false
	}
	r.parts.Offset = hour*3600 + minute*60
	if negative {
		r.parts.Offset = -r.parts.Offset
	}
	return true
}

// foldPrefix tells whether v begins with word, in any letter case. word has
// only lower-case ASCII letters.
func foldPrefix(v []byte, word string) bool {
	if len(v) < len(word) {
		return false
	}
	for i := range len(word) {
		if v[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

var (
	monthNames = [...]string{
		"january", "february", "march", "april", "may", "june",
		"july", "august", "september", "october", "november", "december",
	}
	weekdayNames = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)
