package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// formatWriter gathers the steps of a format.
type formatWriter struct{ steps []formatStep }

// text adds a text that values must hold as it stands.
func (w *formatWriter) text(s string) {
	if s == "" {
		return
	}
	if n := len(w.steps); n > 0 && w.steps[n-1].part == partText {
		w.steps[n-1].text += s
		return
	}
	w.steps = append(w.steps, formatStep{part: partText, text: s})
}

// last returns the last part that was added, or partText if there is none.
func (w *formatWriter) last() formatPart {
	for _, s := range slices.Backward(w.steps) {
		if s.part != partText {
			return s.part
		}
	}
	return partText
}

// widen requires adjacent numbers to have all their digits, so that a value can
// be read in one way only. A fraction at their end may be shorter.
func (w *formatWriter) widen() {
	for i := range w.steps {
		s := &w.steps[i]
		before := i > 0 && w.steps[i-1].most > 0
		after := i+1 < len(w.steps) && w.steps[i+1].most > 0
		if s.most > 0 && (after || before && s.part != partFraction) {
			s.least = s.most
		}
	}
}

// blanks are the characters that are trimmed from both ends of a value.
const blanks = " \t\n\v\f\r"

// formatUnit is a unit of time. Several parts may give it, such as a month's number and name.
type formatUnit struct {
	name             string
	letters, percent string // how it is spelled
	parts            []formatPart
}

// formatUnits returns the units from the largest to the smallest.
func formatUnits() []formatUnit {
	return []formatUnit{
		{"year", "YYYY or YY", "%Y or %y", []formatPart{partYear, partShortYear}},
		{"month", "MM, which is the minute only directly after the hour (mm always is)", "%m or %b (%M is the minute)", []formatPart{partMonth, partMonthName}},
		{"day", "DD", "%d", []formatPart{partDay}},
		{"weekday", "ddd", "%a", []formatPart{partWeekday}},
		{"hour", "HH", "%H", []formatPart{partHour, partHour12}},
		{"minute", "mm", "%M", []formatPart{partMinute}},
		{"second", "SS", "%S", []formatPart{partSecond}},
		{"fraction of the second", "f", "%f", []formatPart{partFraction}},
		{"half of the day (AM, PM)", "A", "%p", []formatPart{partHalf}},
		{"offset", "Z", "%z", []formatPart{partOffset}},
	}
}

// check returns an error if the parts do not fit together. If percent is set,
// its text has the notation of strptime, otherwise letters.
func (w *formatWriter) check(percent bool) error {
	if len(w.steps) == 0 {
		return errors.New("it is empty; write for example MM/DD/YYYY or %m/%d/%Y")
	}
	first, last := w.steps[0].text, w.steps[len(w.steps)-1].text
	if strings.TrimLeft(first, blanks) != first || strings.TrimRight(last, blanks) != last {
		return errors.New("values are read without the blanks around them; leave them out of the format too")
	}
	units := formatUnits()
	for i, u := range units {
		n := w.count(u.parts...)
		spelled := u.letters
		if percent {
			spelled = u.percent
		}
		if i < 3 && n == 0 {
			return fmt.Errorf("it has no %s; write %s", u.name, spelled)
		}
		if n > 1 {
			return fmt.Errorf("the %s is in it twice; keep one", u.name)
		}
		// Minute, second and fraction each need the unit before them.
		if before := units[max(i-1, 0)]; i >= 5 && i <= 7 && n > 0 && w.count(before.parts...) == 0 {
			return fmt.Errorf("it has a %s and no %s; write both or neither", u.name, before.name)
		}
	}
	return w.checkHalf(percent)
}

// checkHalf requires AM or PM with the hours 1 to 12, and forbids it elsewhere.
func (w *formatWriter) checkHalf(percent bool) error {
	hour, twelve, half := "HH", "hh", "A"
	if percent {
		hour, twelve, half = "%H", "%I", "%p"
	}
	hours, hours12, halves := w.count(partHour), w.count(partHour12), w.count(partHalf)
	switch {
	case hours12 > 0 && halves == 0:
		return fmt.Errorf("%s is the hour of a 12-hour clock and needs %s for AM or PM; the hours 0 to 23 are %s", twelve, half, hour)
	case hours > 0 && halves > 0:
		return fmt.Errorf("%s is the hour 0 to 23 and says all; the hour beside %s is %s", hour, half, twelve)
	case halves > 0 && hours12 == 0:
		return fmt.Errorf("AM or PM needs an hour; write %s", twelve)
	}
	return nil
}

// count returns how many steps read one of the parts.
func (w *formatWriter) count(parts ...formatPart) (n int) {
	for _, s := range w.steps {
		if slices.Contains(parts, s.part) {
			n++
		}
	}
	return n
}
