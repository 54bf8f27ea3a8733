package schemas

import (
	"errors"
	"fmt"
	"strings"
)

// directives compiles a format of strptime.
func (w *formatWriter) directives(text string) error {
	for {
		plain, rest, found := strings.Cut(text, "%")
		w.text(plain)
		if !found {
			return nil
		}
		c, rest, err := cutDirective(rest)
		if err != nil {
			return err
		}
		if err := w.directive(c); err != nil {
			return err
		}
		text = rest
	}
}

// cutDirective takes the letter of a directive off. A "-" before it, which is
// how C's strftime leaves out leading zeros, changes nothing: they may be
// missing anyhow.
func cutDirective(rest string) (c byte, after string, err error) {
	if len(rest) > 1 && rest[0] == '-' && strings.IndexByte("mdeHIMSy", rest[1]) >= 0 {
		rest = rest[1:]
	}
	if rest == "" {
		return 0, "", errors.New("a single % at the end; a percent sign is written %%")
	}
	return rest[0], rest[1:], nil
}

func (w *formatWriter) directive(c byte) error {
	switch c {
	case 'Y':
		w.part(partYear, 4, 4)
	case 'y':
		w.part(partShortYear, 2, 2)
	case 'm':
		w.part(partMonth, 1, 2)
	case 'b', 'B':
		w.part(partMonthName, 0, 0)
	case 'd':
		w.part(partDay, 1, 2)
	case 'e':
		w.part(partDay, 1, 2)
		w.steps[len(w.steps)-1].padded = true
	case 'a', 'A':
		w.part(partWeekday, 0, 0)
	case 'H':
		w.part(partHour, 1, 2)
	case 'I':
		w.part(partHour12, 1, 2)
	case 'M':
		w.part(partMinute, 1, 2)
	case 'S':
		w.part(partSecond, 1, 2)
	case 'f':
		w.part(partFraction, 1, 6)
	case 'p':
		w.part(partHalf, 0, 0)
	case 'z':
		w.part(partOffset, 0, 0)
	case '%':
		w.text("%")
	default:
		if long := shorthand(c); long != "" {
			return w.directives(long)
		}
		return unknownDirective(c)
	}
	return nil
}

// shorthand is what a directive stands for, "" for those that are none.
func shorthand(c byte) string {
	switch c {
	case 'F':
		return "%Y-%m-%d"
	case 'T':
		return "%H:%M:%S"
	case 'R':
		return "%H:%M"
	case 'D':
		return "%m/%d/%y"
	}
	return ""
}

// unknownDirective says what to write for a directive that is not read.
func unknownDirective(c byte) error {
	hint := "those known are %Y %y %m %b %d %e %a %H %I %p %M %S %f %z %F %T %R %D %%"
	switch c {
	case 'Z':
		hint = "names of zones are not read, as many mean several; %z reads offsets"
	case 'j':
		hint = "days are read by month and day, %m and %d"
	case 'c', 'x', 'X', 'r':
		hint = "it depends on the locale; write the parts, such as %m/%d/%Y"
	case 'h':
		hint = "the name of the month is %b"
	case 'k':
		hint = "the hour is %H"
	case 'l':
		hint = "the hour is %I, with %p"
	case 'P':
		hint = "AM and PM are %p, in any letter case"
	case 'L', 'N', 'q':
		hint = "the fraction of the second is %f"
	}
	return fmt.Errorf("%%%s is not known: %s", string(rune(c)), hint)
}
