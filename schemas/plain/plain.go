// Package plain makes texts of the service fit to be shown to people. Labels, names, messages
// and values may hold anything: what steers a terminal, breaks a line of YAML or SQL, or
// reverses the text around it. Whatever comes from the service and reaches a terminal, a
// comment or a file name goes through it. It also finds the word that a user most likely
// meant, for keys and words of definitions, types of schemas, and flags of the command line;
// for that it knows no language and only counts edits.
//
// Begin reading with Unsafe and Nearest.
package plain

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Unsafe tells whether a character steers what shows it: the control characters C0 and C1,
// those that set the direction of text, and the separators of lines and paragraphs.
func Unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Line returns text on one line and in valid UTF-8. Runs of unsafe characters and of white
// space become one blank.
func Line(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return Unsafe(r) || unicode.IsSpace(r)
	}), " ")
}

// Lines does what Line does, for a text of formetl's own that may have several lines, with
// blanks that count.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if Unsafe(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Cut shortens a text to most characters, of which the last is then an ellipsis.
func Cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// Plural returns a number and its noun: "1 form", "2,000 forms".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Lasting returns a length of time, rounded to one unit: "59 seconds", "2 hours".
func Lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return Plural(int64(d.Round(time.Second)/time.Second), "second")
	case d < 2*time.Hour:
		return Plural(int64(d.Round(time.Minute)/time.Minute), "minute")
	case d < 48*time.Hour:
		return Plural(int64(d.Round(time.Hour)/time.Hour), "hour")
	}
	return Plural(int64(d.Round(24*time.Hour)/(24*time.Hour)), "day")
}

// Thousands returns a number with grouped digits: 1,234,567.
func Thousands[N int | int64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Few joins names with commas. Of more than `most` names it shows the first ones, and how many
// follow.
func Few(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// JSON escapes what is unsafe in JSON. Encoders do so for C0 alone.
func JSON(data []byte) []byte {
	var b strings.Builder
	for _, r := range string(data) {
		if Unsafe(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return []byte(b.String())
}
