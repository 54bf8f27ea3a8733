package transform

import (
	"bytes"
	"fmt"
	"strings"
)

// foreign counts values that only a column with a declared form reads, because
// a human must say what they mean. 3/4/2025 is a day in March or in April.
// 1,234 is a whole number or has a fraction.
type foreign struct {
	days    [3]dayForm // by separator: / . -
	yearsIn int        // YYYY/MM/DD and YYYY.MM.DD
	minutes int        // 2026-01-02 03:04
	zoned   int        // 2026-01-02T03:04:05 with or without an offset
	words   int        // yes, no and their like
	grouped groupForm
}

// dayForm counts values such as 12/31/2025, with or without a time after the date.
type dayForm struct {
	n, timed         int
	first, second    int // the highest first and second number
	short            int // values with a day or month of one digit
	secondsIn, wider int // times with seconds; times in other forms
}

// groupForm counts numbers with separators between digits.
type groupForm struct {
	n           int
	comma       int  // numbers with a comma before the fraction
	point       int  // numbers with a point before the fraction
	group       byte // the separator between groups; 0 if none was seen
	mixed       bool // groups have different separators
	onlyOfThree int  // one separator and three digits after it: a group or a fraction
}

func (f *foreign) add(v []byte) {
	switch {
	case f.day(v):
	case yearFirst(v):
		f.yearsIn++
	case len(v) == len("2026-01-02 03:04") && v[10] == ' ' && isoTime(append(bytes.Clone(v), ":00"...)):
		f.minutes++
	case isoTime(v):
		f.zoned++
	case answerWord(v):
		f.words++
	default:
		f.grouped.add(v)
	}
}

const daySigns = "/.-"

// day counts v if it begins with two numbers and a year, and tells whether it does.
func (f *foreign) day(v []byte) bool {
	first, rest := leadingNumber(v, 2)
	if first < 0 || len(rest) == 0 {
		return false
	}
	sign := rest[0]
	at := strings.IndexByte(daySigns, sign)
	second, rest2 := leadingNumber(rest[1:], 2)
	if at < 0 || second < 0 || len(rest2) < 5 || rest2[0] != sign || !allDigits(rest2[1:5]) {
		return false
	}
	d := &f.days[at]
	tail := rest2[5:]
	if len(tail) > 0 {
		if tail[0] != ' ' || len(tail) < len(" 1:02") || !digit(tail[1]) {
			return false
		}
		d.timed++
		switch {
		case len(tail) == len(" 12:34:56") && parsesClock(tail[1:]):
			d.secondsIn++
		case len(tail) != len(" 12:34"):
			d.wider++
		}
	}
	d.n++
	d.first, d.second = max(d.first, first), max(d.second, second)
	if len(v)-len(tail) < len("12/31/2025") {
		d.short++
	}
	return true
}

func parsesClock(v []byte) bool {
	_, ok := parseClock(v)
	return ok
}

// leadingNumber cuts a number of one to most digits off v. n is -1 if there is none.
func leadingNumber(v []byte, most int) (n int, rest []byte) {
	i := 0
	for i < len(v) && i <= most && digit(v[i]) {
		n = n*10 + int(v[i]-'0')
		i++
	}
	if i == 0 || i > most {
		return -1, v
	}
	return n, v[i:]
}

func yearFirst(v []byte) bool {
	if len(v) != len("2025/12/31") || v[4] != '/' && v[4] != '.' || v[7] != v[4] {
		return false
	}
	iso := bytes.Clone(v)
	iso[4], iso[7] = '-', '-'
	_, reason := parseDate(iso)
	return reason == ""
}

func isoTime(v []byte) bool {
	if len(v) < len("2006-01-02T15:04:05") || v[10] != 'T' && v[10] != ' ' {
		return false
	}
	_, reason := parseDate(v[:10])
	return reason == "" && parsesClock(v[11:19])
}

// answerWord tells whether a value is a word for yes or no.
func answerWord(v []byte) bool {
	switch strings.ToLower(string(v)) {
	case "yes", "no", "y", "n", "true", "false", "t", "f", "on", "off", "checked", "unchecked",
		"ja", "nein", "nee", "nej", "oui", "non", "si", "sí", "sì", "não", "nao", "sim", "tak", "nie",
		"да", "нет", "是", "否", "はい", "いいえ", "ναι", "όχι", "evet", "hayır", "نعم", "لا", "כן", "לא":
		return true
	}
	return false
}

// add counts v if it is a number with commas, points, blanks or apostrophes.
func (g *groupForm) add(v []byte) {
	v = bytes.TrimPrefix(v, []byte("-"))
	var signs []byte
	var digits []int // number of digits between the separators
	n := 0
	for _, c := range v {
		switch {
		case digit(c):
			n++
		case c == ',' || c == '.' || c == '\'' || c == ' ':
			signs, digits, n = append(signs, c), append(digits, n), 0
		default:
			return
		}
	}
	last := len(signs) - 1
	if last < 0 || n == 0 || digits[0] == 0 {
		return
	}
	whole := last > 0 && signs[last-1] == signs[last] || signs[last] == '\'' || signs[last] == ' ' || last == 0 && n == 3 && digits[0] <= 3
	if whole { // the last separator also stands before a group
		signs, digits = append(signs, 0), append(digits, n)
		last++
	}
	for i := 1; i <= last; i++ {
		if digits[i] != 3 || digits[0] > 3 {
			return
		}
	}
	g.n++
	for _, sign := range signs[:last] {
		g.mixed = g.mixed || g.group != 0 && g.group != sign
		g.group = sign
	}
	switch {
	case whole && last == 1 && (signs[0] == ',' || signs[0] == '.'):
		g.onlyOfThree++
	case whole:
	case signs[last] == ',':
		g.comma++
	default:
		g.point++
	}
}

// hint says what all n values look like and how a schema declares them, "" if
// unknown. ints is how many of the values are whole numbers.
func (f *foreign) hint(n, ints int) string {
	for i, d := range f.days {
		if d.n == n {
			return d.hint(daySigns[i : i+1])
		}
	}
	switch n {
	case f.minutes:
		return `like times without seconds: type: timestamp with format: "YYYY-MM-DD HH:mm" declares them`
	case f.yearsIn:
		return `like dates with the year first: a format declares them (type: date, format: "YYYY/MM/DD", with their sign)`
	case f.zoned:
		return "like times in the manner of ISO 8601: type: timestamp reads them, though they are not printed back the same"
	case f.words:
		return "like words for yes and no: type: bool with true_values and false_values declares them"
	}
	if f.grouped.n > 0 && f.grouped.n+ints == n {
		return f.grouped.hint()
	}
	return ""
}

// layouts are the formats of the values, with the day and with the month in front.
func (d dayForm) layouts(sign string) (dayFirst, monthFirst string) {
	day, month, clock := "DD", "MM", ""
	if d.short > 0 {
		day, month = "D", "M"
	}
	if d.timed > 0 {
		clock = " HH:mm"
		if d.secondsIn > 0 {
			clock += ":SS"
		}
	}
	return day + sign + month + sign + "YYYY" + clock, month + sign + day + sign + "YYYY" + clock
}

// mixed tells whether the values have more than one form.
func (d dayForm) mixed() bool {
	return d.wider > 0 || d.timed > 0 && d.timed < d.n || d.secondsIn > 0 && d.secondsIn < d.timed || d.first > 12 && d.second > 12
}

func (d dayForm) hint(sign string) string {
	kind := "date"
	if d.timed > 0 {
		kind = "timestamp"
	}
	dayFirst, monthFirst := d.layouts(sign)
	declares := func(format string) string {
		return fmt.Sprintf(`like dates: type: %s with format: "%s" declares them`, kind, format)
	}
	switch {
	case d.first > 12 && d.second > 12:
		return "like dates, but the month is now in the first and now in the second place"
	case d.mixed():
		return "like dates, in more than one form: formats declare them (type: timestamp, format: [...])"
	case d.first > 12:
		return declares(dayFirst)
	case d.second > 12:
		return declares(monthFirst)
	}
	return fmt.Sprintf(`like dates, but no value tells the day from the month: type: %s with format: "%s" or "%s" declares them`, kind, monthFirst, dayFirst)
}

// formats returns the formats that read all n values as times without a doubt, nil if there
// are none. times of them are YYYY-MM-DD HH:MM:SS.
func (f *foreign) formats(n, times int) []string {
	for i, d := range f.days {
		dayFirst, monthFirst := d.layouts(daySigns[i : i+1])
		switch {
		case d.n != n || d.mixed():
		case d.first > 12:
			return []string{dayFirst}
		case d.second > 12:
			return []string{monthFirst}
		}
	}
	switch n {
	case f.minutes:
		return []string{"YYYY-MM-DD HH:mm"}
	case f.minutes + times:
		return []string{"YYYY-MM-DD HH:mm:SS", "YYYY-MM-DD HH:mm"}
	}
	return nil
}

func (g groupForm) hint() string {
	group := ""
	if g.group != 0 {
		group = fmt.Sprintf(", group_separator: %q", string(g.group))
	}
	switch {
	case g.mixed || g.comma > 0 && g.point > 0:
		return "like numbers, but with separators in more than one manner"
	case g.comma > 0 && g.group == ',' || g.point > 0 && g.group == '.':
		return "like numbers, but one sign stands for both groups and fractions"
	case g.comma > 0:
		return `like numbers: type: decimal(p,s) with decimal_separator: ","` + group + " declares them"
	case g.point > 0 && group == "":
		return "like numbers, but with zeros in front"
	case g.point > 0:
		return "like numbers: type: decimal(p,s) with" + group[1:] + " declares them"
	case g.onlyOfThree == g.n:
		return fmt.Sprintf("like numbers, but no value tells whether %q divides groups or begins a fraction: group_separator or decimal_separator declares it", string(g.group))
	}
	return "like whole numbers: type: int64 with" + group[1:] + " declares them"
}
