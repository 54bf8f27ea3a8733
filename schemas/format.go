package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Format is the form of the dates or timestamps of a column, compiled by
// ParseFormat. Several goroutines may use it at once.
type Format struct {
	text    string
	pattern *regexp.Regexp // matches a value, with one group for each of its parts
	layout  string         // the layout for package time, of the parts with a blank between them
	units   map[string]int // number of the group that gives the year, the month and so on
}

// formatPart is a spelling in a format, and how it is read. Package time alone would take hours of
// one digit for HH, fractions that no format has, and the hour 0 of a 12-hour clock.
type formatPart struct{ spelling, unit, layout, pattern string }

// formatParts are the parts that a format may have, longer spellings before those that they
// begin with.
var formatParts = []formatPart{
	{"YYYY", "year", "2006", `\d{4}`},
	{"YY", "year", "06", `\d\d`},
	{"MMMM", "month", "January", `[A-Za-z]+`},
	{"MMM", "month", "Jan", `[A-Za-z]{3}`},
	{"MM", "month", "01", `\d\d`},
	{"M", "month", "1", `\d\d?`},
	{"DD", "day", "02", `\d\d`},
	{"D", "day", "2", `\d\d?`},
	{"dddd", "weekday", "Monday", `[A-Za-z]+`},
	{"ddd", "weekday", "Mon", `[A-Za-z]{3}`},
	{"HH", "hour", "15", `\d\d`},
	{"H", "hour", "15", `\d\d?`},
	{"hh", "hour", "03", `0[1-9]|1[0-2]`},
	{"h", "hour", "3", `0?[1-9]|1[0-2]`},
	{"A", "AM or PM", "PM", `[AaPp][Mm]`},
	{"mm", "minute", "04", `\d\d`},
	{"m", "minute", "4", `\d\d?`},
	{"SS", "second", "05", `\d\d`},
	{"S", "second", "5", `\d\d?`},
	{"ss", "second", "05", `\d\d`},
	{"s", "second", "5", `\d\d?`},
	{".ffffff", "fraction of the second", ".000000", `\.\d{6}`},
	{".fff", "fraction of the second", ".000", `\.\d{3}`},
	{".f", "fraction of the second", ".999999", `\.\d{1,6}`},
	{"Z", "offset", "Z0700", `Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d`},
}

// accepted ends the message about a text that is no format: it shows what formats look like.
const accepted = "write a format like YYYY-MM-DD HH:mm:ss.f, DD.MM.YYYY or M/D/YYYY h:mm A; MMM and MMMM are the name of the month, ddd and dddd that of the weekday, Z is the offset, and 'text' is text"

// ParseFormat compiles a format, which is spelled in letters:
//
//	YYYY YY         year: four digits; two, where 69 to 99 are 1969 to 1999
//	MM M            month: two digits; one or two
//	MMM MMMM        month: the first three letters of the English name; all
//	DD D            day of the month
//	ddd dddd        the English name of the weekday, which must be the day's
//	HH H  hh h      hour: 0 to 23; 1 to 12, with A
//	mm m            minute; so are MM and M directly after the hour
//	SS S  ss s      second
//	.f .fff .ffffff fraction of the second: one to six digits; three; six
//	A               AM or PM
//	Z               offset: Z, +hhmm, +hh:mm
//	'text' ''       the text as it stands; an apostrophe
//
// T stands for itself, and other letters need apostrophes to do so. Names, AM and PM may be in
// any letter case. All else stands for itself, except the % of other notations, which is an
// error.
//
// A format needs a year, a month and a day, and may have each part only once. A
// value fits if the format reads all of it and the day exists (Gregorian
// calendar, years 0001 to 9999). Leap seconds do not fit.
func ParseFormat(text string) (*Format, error) {
	f := &Format{text: text, units: map[string]int{}}
	if err := f.compile(); err != nil {
		return nil, fmt.Errorf("format %q: %w", text, err)
	}
	return f, nil
}

// compile makes the format's pattern and layout from its text.
func (f *Format) compile() error {
	if strings.TrimSpace(f.text) != f.text {
		return errors.New("it begins or ends with a blank; remove it, because values are read without blanks around them")
	}
	pattern := `\A`
	var layouts []string
	var last formatPart
	twelve := false   // the format has an hour of a 12-hour clock
	adjacent := false // the next part follows the last one without a sign between
	for rest := f.text; rest != ""; {
		part, found := nextPart(rest)
		if !found {
			literal, after, err := cutLiteral(rest)
			if err != nil {
				return err
			}
			pattern += regexp.QuoteMeta(literal)
			rest, adjacent = after, false
			continue
		}
		rest = rest[len(part.spelling):]
		switch {
		case last.unit == "hour" && part.spelling == "MM":
			part.unit, part.layout = "minute", "04"
		case last.unit == "hour" && part.spelling == "M":
			part.unit, part.layout = "minute", "4"
		}
		if adjacent && last.number() && part.number() && min(len(last.spelling), len(part.spelling)) == 1 {
			return fmt.Errorf("%s%s can be read in several ways; numbers with nothing between them need all digits, as in YYYYMMDD", last.spelling, part.spelling)
		}
		if f.units[part.unit] > 0 {
			return fmt.Errorf("it has the %s twice; remove one", part.unit)
		}
		f.units[part.unit] = len(f.units) + 1
		twelve = twelve || part.spelling == "hh" || part.spelling == "h"
		pattern += "(" + part.pattern + ")"
		layouts = append(layouts, part.layout)
		last, adjacent = part, true
	}
	f.layout = strings.Join(layouts, " ")
	var err error
	if f.pattern, err = regexp.Compile(pattern + `\z`); err != nil {
		return err
	}
	return f.check(twelve)
}

// number tells whether the part of a format is a number of one digit or more.
func (p formatPart) number() bool {
	return p.layout != "" && p.layout[0] >= '0' && p.layout[0] <= '9'
}

func nextPart(text string) (formatPart, bool) {
	for _, p := range formatParts {
		if strings.HasPrefix(text, p.spelling) {
			return p, true
		}
	}
	return formatPart{}, false
}

// cutLiteral cuts off the beginning of a format's text that stands for itself.
func cutLiteral(text string) (literal, rest string, err error) {
	if text[0] != '\'' {
		if c := text[0]; c != 'T' && c|0x20 >= 'a' && c|0x20 <= 'z' || c == '%' {
			return "", "", fmt.Errorf("%s stands for no part of a date; %s", text[:1], accepted)
		}
		return text[:1], text[1:], nil
	}
	quoted := quotedText.FindStringSubmatch(text)
	switch {
	case quoted == nil:
		return "", "", errors.New("an apostrophe is not closed; write text as 'text', and an apostrophe as ''")
	case quoted[1] == "":
		return "'", text[2:], nil
	}
	return strings.ReplaceAll(quoted[1], "''", "'"), text[len(quoted[0]):], nil
}

var quotedText = regexp.MustCompile(`^'((?:[^']|'')*)'`)

// check returns an error if the format's parts do not make up a date, or do not fit together.
func (f *Format) check(twelve bool) error {
	for _, unit := range []string{"year", "month", "day"} {
		if f.units[unit] == 0 {
			return fmt.Errorf("it has no %s (MM directly after the hour is the minute); %s", unit, accepted)
		}
	}
	for _, pair := range [][2]string{{"minute", "hour"}, {"second", "minute"}, {"fraction of the second", "second"}} {
		if f.units[pair[0]] > 0 && f.units[pair[1]] == 0 {
			return fmt.Errorf("it has a %s but no %s; write both or neither", pair[0], pair[1])
		}
	}
	if twelve != (f.units["AM or PM"] > 0) {
		return errors.New("the hours 1 to 12 (hh, h) and AM or PM (A) need each other; for the hours 0 to 23 write HH or H")
	}
	return nil
}

// String returns the text that the format was compiled from.
func (f *Format) String() string { return f.text }

// HasTime tells whether the format reads a time of day or an offset.
func (f *Format) HasTime() bool { return f.units["hour"] > 0 || f.HasOffset() }

// HasOffset tells whether values of the format give their offset from UTC. Without an offset
// they are wall-clock times, and Read returns them as if they were in UTC.
func (f *Format) HasOffset() bool { return f.units["offset"] > 0 }

// Read reads v by the format. ok tells whether v fits the format.
func (f *Format) Read(v []byte) (at time.Time, ok bool) {
	parts := f.pattern.FindSubmatch(v)
	if parts == nil {
		return at, false
	}
	joined := bytes.ToUpper(bytes.Join(parts[1:], []byte(" ")))
	at, err := time.Parse(f.layout, string(bytes.ReplaceAll(joined, []byte(":"), nil))) // an offset may have a colon
	if err != nil || at.Year() < 1 {
		return at, false
	}
	i := f.units["weekday"]
	return at, i == 0 || strings.EqualFold(at.Weekday().String()[:3], string(parts[i][:3]))
}
