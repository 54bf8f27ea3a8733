package schemas

import (
	"errors"
	"fmt"
	"strings"
)

// letters compiles a format in letters.
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
			w.part(partHalf, 0, 0)
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

// run compiles one letter, or the same several times.
func (w *formatWriter) run(run string) error {
	n := len(run)
	switch run {
	case "YYYY", "yyyy":
		w.part(partYear, 4, 4)
	case "YY", "yy":
		w.part(partShortYear, 2, 2)
	case "MMM", "MMMM":
		w.part(partMonthName, 0, 0)
	case "DD", "dd", "D", "d":
		w.part(partDay, n, 2)
	case "ddd", "dddd":
		w.part(partWeekday, 0, 0)
	case "M", "MM":
		if last := w.last(); last == partHour || last == partHour12 {
			w.part(partMinute, n, 2)
		} else {
			w.part(partMonth, n, 2)
		}
	case "H", "HH":
		w.part(partHour, n, 2)
	case "h", "hh":
		w.part(partHour12, n, 2)
	case "m", "mm":
		w.part(partMinute, n, 2)
	case "S", "SS", "s", "ss":
		w.part(partSecond, n, 2)
	case "f":
		w.part(partFraction, 1, 6)
	case "ff", "fff", "ffff", "fffff", "ffffff":
		w.part(partFraction, n, n)
	case "Z", "ZZ":
		w.part(partOffset, 0, 0)
	default:
		return unknownLetters(run)
	}
	return nil
}

// unknownLetters says what to write for letters that mean nothing.
func unknownLetters(run string) error {
	hint := fmt.Sprintf("the letters are YYYY YY MM M MMM DD D ddd HH H hh h A mm SS f Z; text that stands for itself is written '%s'", run)
	switch run[0] {
	case 'Y', 'y':
		hint = "the year is YYYY, or YY for two digits"
	case 'D':
		hint = "the day of the month is DD or D, the name of the weekday ddd"
	case 'd':
		hint = "the day of the month is DD or D, the name of the weekday ddd or dddd"
	case 'm', 'M':
		hint = "the month is MM or M, its name MMM or MMMM; the minute is mm"
	case 'H', 'h':
		hint = "the hour is HH or H, or hh or h with A for AM and PM"
	case 'S', 's', 'F', 'f', 'n':
		hint = "the second is SS or S, its fraction f, or ff to ffffff for as many digits"
	case 'Z', 'z', 'X', 'x':
		hint = "the offset from UTC is Z"
	case 'E', 'e':
		hint = "the name of the weekday is ddd or dddd"
	}
	return fmt.Errorf("%s means nothing: %s", run, hint)
}

// halfLetters counts the letters that stand for AM or PM.
func halfLetters(text string) (int, error) {
	for _, word := range []string{"AM/PM", "am/pm", "AM", "PM", "am", "pm", "A", "a"} {
		if strings.HasPrefix(text, word) {
			return len(word), nil
		}
	}
	return 0, fmt.Errorf("%s means nothing: AM and PM are read by A", text[:1])
}

// cutQuoted cuts off text in apostrophes; two of them are one.
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

// goLayout refuses the layouts of Go's package time, which would be read as
// plain text, and gives the right spelling.
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
