package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// notation says how formats spell a part.
type notation struct {
	part        formatPart
	letters     string // its spellings in letters, divided by blanks
	directives  string // the letters of its % directives, one byte each
	least, most int    // digits of a number; a spelling in letters has the least
}

func notations() []notation {
	return []notation{
		{partYear, "YYYY yyyy", "Y", 4, 4},
		{partShortYear, "YY yy", "y", 2, 2},
		{partMonth, "MM M", "m", 1, 2},
		{partMonthName, "MMMM MMM", "bB", 0, 0},
		{partDay, "DD D dd d", "de", 1, 2},
		{partWeekday, "dddd ddd", "aA", 0, 0},
		{partHour, "HH H", "H", 1, 2},
		{partHour12, "hh h", "I", 1, 2},
		{partMinute, "mm m", "M", 1, 2},
		{partSecond, "SS S ss s", "S", 1, 2},
		{partFraction, "ffffff fffff ffff fff ff f", "f", 1, 6},
		{partHalf, "", "p", 0, 0}, // function halfLetters knows its letters
		{partOffset, "ZZ Z", "z", 0, 0},
	}
}

// directives compiles a format of strptime, such as %Y-%m-%d.
func (w *formatWriter) directives(text string) error {
	for {
		plain, rest, found := strings.Cut(text, "%")
		w.text(plain)
		if !found {
			return nil
		}
		// In C's strftime a "-" leaves out leading zeros. It changes nothing
		// here, because leading zeros are never required.
		if len(rest) > 1 && rest[0] == '-' && strings.IndexByte("mdeHIMSy", rest[1]) >= 0 {
			rest = rest[1:]
		}
		if rest == "" {
			return errors.New("a single % at the end; a percent sign is written %%")
		}
		if err := w.directive(rest[0]); err != nil {
			return err
		}
		text = rest[1:]
	}
}

func (w *formatWriter) directive(c byte) error {
	for _, n := range notations() {
		if strings.IndexByte(n.directives, c) >= 0 {
			w.steps = append(w.steps, formatStep{part: n.part, least: n.least, most: n.most, padded: c == 'e'})
			return nil
		}
	}
	if c == '%' {
		w.text("%")
		return nil
	}
	if long, ok := map[byte]string{'F': "%Y-%m-%d", 'T': "%H:%M:%S", 'R': "%H:%M", 'D': "%m/%d/%y"}[c]; ok {
		return w.directives(long)
	}
	return fmt.Errorf("%%%s is not known: %s", string(rune(c)), hint(c, [][2]string{
		{"Z", "names of zones are not read, as many mean several; %z reads offsets"},
		{"j", "days are read by month and day, %m and %d"},
		{"cxXr", "it depends on the locale; write the parts, such as %m/%d/%Y"},
		{"h", "the name of the month is %b"},
		{"k", "the hour is %H"},
		{"l", "the hour is %I, with %p"},
		{"P", "AM and PM are %p, in any letter case"},
		{"LNq", "the fraction of the second is %f"},
	}, "those known are %Y %y %m %b %d %e %a %H %I %p %M %S %f %z %F %T %R %D %%"))
}

// hint returns the second text of the first pair whose first one holds c, or
// else otherwise.
func hint(c byte, pairs [][2]string, otherwise string) string {
	for _, p := range pairs {
		if strings.IndexByte(p[0], c) >= 0 {
			return p[1]
		}
	}
	return otherwise
}

// letters compiles a format in letters, such as YYYY-MM-DD.
func (w *formatWriter) letters(text string) error {
	for len(text) > 0 {
		c := text[0]
		switch {
		case c == '\'':
			quoted, rest, ok := cutQuoted(text)
			if !ok {
				return errors.New("an apostrophe is not closed; text that stands for itself is written 'text', an apostrophe ''")
			}
			w.text(quoted)
			text = rest
		case !isLetter(c) || c == 'T':
			w.text(text[:1])
			text = text[1:]
		case strings.IndexByte("AaPp", c) >= 0:
			n, err := halfLetters(text)
			if err != nil {
				return err
			}
			w.steps = append(w.steps, formatStep{part: partHalf})
			text = text[n:]
		default:
			n := len(text) - len(strings.TrimLeft(text, text[:1]))
			if err := w.run(text[:n]); err != nil {
				return err
			}
			text = text[n:]
		}
	}
	return nil
}

// run compiles a run of one or more equal letters, such as MM.
func (w *formatWriter) run(run string) error {
	for _, n := range notations() {
		if !slices.Contains(strings.Fields(n.letters), run) {
			continue
		}
		step := formatStep{part: n.part, most: n.most}
		if n.most > 0 {
			step.least = len(run)
		}
		if last := w.last(); n.part == partMonth && (last == partHour || last == partHour12) {
			step.part = partMinute
		}
		if n.part == partFraction && len(run) > 1 {
			step.most = len(run)
		}
		w.steps = append(w.steps, step)
		return nil
	}
	return fmt.Errorf("%s means nothing: %s", run, hint(run[0], [][2]string{
		{"Yy", "the year is YYYY, or YY for two digits"},
		{"D", "the day of the month is DD or D, the name of the weekday ddd"},
		{"d", "the day of the month is DD or D, the name of the weekday ddd or dddd"},
		{"mM", "the month is MM or M, its name MMM or MMMM; the minute is mm"},
		{"Hh", "the hour is HH or H, or hh or h with A for AM and PM"},
		{"SsFfn", "the second is SS or S, its fraction f, or ff to ffffff for as many digits"},
		{"ZzXx", "the offset from UTC is Z"},
		{"Ee", "the name of the weekday is ddd or dddd"},
	}, fmt.Sprintf("the letters are YYYY YY MM M MMM DD D ddd HH H hh h A mm SS f Z; text that stands for itself is written '%s'", run)))
}

// halfLetters counts the letters at the start of text that stand for AM or PM.
func halfLetters(text string) (int, error) {
	for _, word := range []string{"AM/PM", "am/pm", "AM", "PM", "am", "pm", "A", "a"} {
		if strings.HasPrefix(text, word) {
			return len(word), nil
		}
	}
	return 0, fmt.Errorf("%s means nothing: AM and PM are read by A", text[:1])
}

// cutQuoted cuts off the text in apostrophes that text begins with. Two of them
// stand for one.
func cutQuoted(text string) (quoted, rest string, ok bool) {
	inner, rest, ok := strings.Cut(text[1:], "'")
	switch {
	case !ok:
		return "", "", false
	case inner == "":
		return "'", rest, true
	}
	for strings.HasPrefix(rest, "'") {
		more, after, closed := strings.Cut(rest[1:], "'")
		if !closed {
			return "", "", false
		}
		inner, rest = inner+"'"+more, after
	}
	return inner, rest, true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// goLayout returns an error with the right spelling for a layout of Go's package time, such
// as 2006-01-02. ParseFormat would read the layout as plain text. Other formats give nil.
func goLayout(text string) error {
	two := strings.Contains(text, "02") && (strings.Contains(text, "01") || strings.Contains(text, "Jan"))
	if !two && !strings.Contains(text, "2006") {
		return nil
	}
	letters := strings.NewReplacer(
		"2006", "YYYY", "January", "MMMM", "Jan", "MMM", "Monday", "dddd", "Mon", "ddd",
		"Z07:00", "Z", "-07:00", "Z", "-0700", "Z", "PM", "A", "pm", "A", "_2", "D",
		"000000", "ffffff", "000", "fff", "01", "MM", "02", "DD", "03", "hh", "04", "mm", "05", "ss", "06", "YY", "15", "HH",
		"1", "M", "2", "D", "3", "h", "4", "m", "5", "s",
	).Replace(text)
	if _, err := ParseFormat(letters); err != nil {
		letters = "YYYY-MM-DD"
	}
	return fmt.Errorf("this is a layout of Go; write it in letters, such as %s", letters)
}
