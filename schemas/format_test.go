package schemas

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

func mustFormat(t testing.TB, text string) *Format {
	t.Helper()
	f, err := ParseFormat(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// shown spells parts, "-" for a value that does not fit.
func shown(f *Format, v string) string {
	p, ok := f.Read([]byte(v))
	if !ok {
		return "-"
	}
	s := fmt.Sprintf("%04d-%02d-%02d", p.Year, p.Month, p.Day)
	if f.HasTime() {
		s += fmt.Sprintf(" %02d:%02d:%02d.%06d", p.Hour, p.Minute, p.Second, p.Micros)
	}
	if p.HasOffset {
		s += fmt.Sprintf(" %+d", p.Offset)
	}
	return s
}

// TestFormatReads is what each notation reads and refuses: "-".
func TestFormatReads(t *testing.T) {
	for _, tt := range []struct{ format, value, want string }{
		{"%m/%d/%Y", "12/31/2025", "2025-12-31"},
		{"%m/%d/%Y", "1/2/2025", "2025-01-02"},
		{"%m/%d/%Y", "31/12/2025", "-"},
		{"%m/%d/%Y", "12/31/25", "-"},
		{"%m/%d/%Y", "12/31/20255", "-"},
		{"%m/%d/%Y", "12/31/2025 ", "-"},
		{"%m/%d/%Y", "012/31/2025", "-"},
		{"%m/%d/%Y", "+1/2/2025", "-"},
		{"%m/%d/%Y", "", "-"},
		{"%m/%d/%Y", "2/29/2024", "2024-02-29"},
		{"%m/%d/%Y", "2/29/2025", "-"},
		{"%m/%d/%Y", "2/29/1900", "-"},
		{"%m/%d/%Y", "4/31/2025", "-"},
		{"%m/%d/%Y", "0/1/2025", "-"},
		{"%m/%d/%Y", "1/0/2025", "-"},
		{"%m/%d/%Y", "1/1/0000", "-"},
		{"%-m/%-d/%Y", "1/2/2025", "2025-01-02"},
		{"%m/%d/%y", "01/02/69", "1969-01-02"},
		{"%D", "01/02/68", "2068-01-02"},
		{"%D", "01/02/2068", "-"},
		{"%Y%m%d", "20260115", "2026-01-15"},
		{"%Y%m%d", "2026115", "-"}, // 15 January or 5 November
		{"%d%m%Y", "1012026", "-"},
		{"%e.%m.%Y", " 5.1.2026", "2026-01-05"},
		{"%e.%m.%Y", "15.1.2026", "2026-01-15"},
		{"%e.%m.%Y", " 15.1.2026", "-"},
		{"%e.%m.%Y", " .1.2026", "-"},
		{"%d %b %Y", "3 MAY 2026", "2026-05-03"},
		{"%d %b %Y", "03 September 2026", "2026-09-03"},
		{"%d %B %Y", "03 sep 2026", "2026-09-03"},
		{"%d %B %Y", "03 Sept 2026", "-"},
		{"%d %B %Y", "03 Mai 2026", "-"},
		{"%a, %d %b %Y", "Thu, 15 Jan 2026", "2026-01-15"},
		{"%A, %d %b %Y", "THURSDAY, 15 Jan 2026", "2026-01-15"},
		{"%A, %d %b %Y", "Friday, 15 Jan 2026", "-"}, // it was a Thursday
		{"%F %T", "2026-01-15 12:30:59", "2026-01-15 12:30:59.000000"},
		{"%F %T", "2026-01-15 12:30:60", "-"},
		{"%F %T", "2026-01-15 24:00:00", "-"},
		{"%F %R", "2026-01-15 2:05", "2026-01-15 02:05:00.000000"},
		{"%F %H", "2026-01-15 2", "2026-01-15 02:00:00.000000"},
		{"%F %I:%M %p", "2026-01-15 12:05 am", "2026-01-15 00:05:00.000000"},
		{"%F %I:%M %p", "2026-01-15 12:05 PM", "2026-01-15 12:05:00.000000"},
		{"%F %I:%M%p", "2026-01-15 1:05Pm", "2026-01-15 13:05:00.000000"},
		{"%F %I:%M %p", "2026-01-15 13:05 PM", "-"},
		{"%F %I:%M %p", "2026-01-15 00:05 AM", "-"},
		{"%F %I:%M %p", "2026-01-15 1:05", "-"},
		{"%p %I %F", "PM 11 2026-01-15", "2026-01-15 23:00:00.000000"},
		{"%F %T.%f", "2026-01-15 12:30:59.5", "2026-01-15 12:30:59.500000"},
		{"%F %T.%f", "2026-01-15 12:30:59.000001", "2026-01-15 12:30:59.000001"},
		{"%F %T.%f", "2026-01-15 12:30:59.0000010", "-"},
		{"%F %T.%f", "2026-01-15 12:30:59.", "-"},
		{"%Y%m%d%H%M%S%f", "202601151230590001", "2026-01-15 12:30:59.000100"},
		{"%FT%T%z", "2026-01-15T12:30:59Z", "2026-01-15 12:30:59.000000 +0"},
		{"%FT%T%z", "2026-01-15T12:30:59+0530", "2026-01-15 12:30:59.000000 +19800"},
		{"%FT%T%z", "2026-01-15T12:30:59-05:30", "2026-01-15 12:30:59.000000 -19800"},
		{"%FT%T%z", "2026-01-15T12:30:59-06", "2026-01-15 12:30:59.000000 -21600"},
		{"%FT%T%z", "2026-01-15T12:30:59-06:", "-"},
		{"%FT%T%z", "2026-01-15T12:30:59-06:3", "-"},
		{"%FT%T%z", "2026-01-15T12:30:59-063", "-"},
		{"%FT%T%z", "2026-01-15T12:30:59+24:00", "-"},
		{"%FT%T%z", "2026-01-15T12:30:59+01:60", "-"},
		{"%FT%T%z", "2026-01-15T12:30:59", "-"},
		{"%d%%%m%%%Y", "1%2%2026", "2026-02-01"},
		{"am %d. %m. %Y", "am 1. 2. 2026", "2026-02-01"},
		{"%Y年%m月%d日", "2026年1月15日", "2026-01-15"},

		{"MM/DD/YYYY", "12/31/2025", "2025-12-31"},
		{"MM/DD/YYYY", "1/02/2025", "-"},
		{"M/D/YYYY", "1/02/2025", "2025-01-02"},
		{"M/D/YY", "1/2/99", "1999-01-02"},
		{"dd.MM.yyyy", "31.12.2025", "2025-12-31"},
		{"DD.MM.YYYY HH:MM", "31.12.2025 23:59", "2025-12-31 23:59:00.000000"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 12:30:59", "2026-01-15 12:30:59.000000"},
		{"HH:MM:SS MM/DD/YYYY", "12:30:59 01/15/2026", "2026-01-15 12:30:59.000000"},
		{"mm.HH DD MM YYYY", "30.12 15 01 2026", "2026-01-15 12:30:00.000000"},
		{"D.M.YYYY H:mm", "5.1.2026 7:05", "2026-01-05 07:05:00.000000"},
		{"D.M.YYYY H:m:s", "5.1.2026 7:5:9", "2026-01-05 07:05:09.000000"},
		{"M/D/YYYY h:mm A", "1/5/2026 7:05 pm", "2026-01-05 19:05:00.000000"},
		{"M/D/YYYY hh:MM AM/PM", "1/5/2026 07:05 AM", "2026-01-05 07:05:00.000000"},
		{"DD-MMM-YYYY", "05-jan-2026", "2026-01-05"},
		{"MMMM D, YYYY", "January 5, 2026", "2026-01-05"},
		{"ddd D MMM YYYY", "Mon 5 Jan 2026", "2026-01-05"},
		{"ddd D MMM YYYY", "Tue 5 Jan 2026", "-"},
		{"YYYY-MM-DDTHH:mm:ss.fffZ", "2026-01-15T12:30:59.123Z", "2026-01-15 12:30:59.123000 +0"},
		{"YYYY-MM-DDTHH:mm:ss.fffZ", "2026-01-15T12:30:59.12Z", "-"},
		{"YYYY-MM-DDTHH:mm:ss.fZZ", "2026-01-15T12:30:59.12+01:00", "2026-01-15 12:30:59.120000 +3600"},
		{"YYYYMMDD", "20260115", "2026-01-15"},
		{"YYYYMMDDHHMMSSffffff", "20260115123059000007", "2026-01-15 12:30:59.000007"},
		{"DD.MM.YYYY HH:mm 'Uhr'", "15.01.2026 12:30 Uhr", "2026-01-15 12:30:00.000000"},
		{"DD.MM.YYYY HH:mm 'Uhr'", "15.01.2026 12:30 uhr", "-"},
		{"D 'o''clock' M YYYY", "1 o'clock 2 2026", "2026-02-01"},
		{"D''M''YYYY", "1'2'2026", "2026-02-01"},
		{"YYYY年M月D日", "2026年1月15日", "2026-01-15"},
		{"YYYY-MM-DD 00:00:00", "2026-01-15 00:00:00", "2026-01-15"},
		{"YYYY-MM-DD 00:00:00", "2026-01-15 00:00:01", "-"},
	} {
		if got := shown(mustFormat(t, tt.format), tt.value); got != tt.want {
			t.Errorf("%q reads %q as %s, want %s", tt.format, tt.value, got, tt.want)
		}
	}
}

// TestFormatErrors: each error says what is wrong and what to write.
func TestFormatErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "it is empty; write for example MM/DD/YYYY or %m/%d/%Y",
		"%m/%d/%Q":                    "%Q is not known: those known are %Y",
		"%m/%d/%":                     "a single % at the end",
		"%m/%d":                       "it has no year; write %Y or %y",
		"%Y-%d":                       "it has no month; write %m or %b (%M is the minute)",
		"%Y-%M-%d":                    "it has no month",
		"%Y-%m":                       "it has no day; write %d",
		"%H:%M":                       "it has no year",
		"%D %Y":                       "the year is in it twice",
		"%m %b %d %Y":                 "the month is in it twice",
		"%H %I %p %F":                 "the hour is in it twice",
		"%F %I:%M":                    "%I is the hour of a 12-hour clock and needs %p for AM or PM; the hours 0 to 23 are %H",
		"%F %H:%M %p":                 "the hour beside %p is %I",
		"%F %p":                       "AM or PM needs an hour; write %I",
		"%F %M":                       "it has a minute and no hour",
		"%F %H:%S":                    "it has a second and no minute",
		"%F %R.%f":                    "it has a fraction of the second and no second",
		"%F %T %Z":                    "%z reads offsets",
		"%Y-%j":                       "days are read by month and day",
		"%c":                          "it depends on the locale",
		" %F":                         "leave them out of the format too",
		"%F\n":                        "leave them out of the format too",
		"01/02/2006":                  "this is a layout of Go; write it in letters, such as MM/DD/YYYY",
		"2006-01-02":                  "such as YYYY-MM-DD",
		"2006-01-02T15:04:05Z07:00":   "such as YYYY-MM-DDTHH:mm:ssZ",
		"Jan 2, 2006 at 3:04pm (MST)": "such as YYYY-MM-DD",
		"Jan 02, 06 3:04 PM":          "such as MMM DD, YY h:mm A",
		"MM/DD":                       "it has no year; write YYYY or YY",
		"dd/mm/yyyy":                  "it has no month; write MM, which is the minute only directly after the hour (mm always is)",
		"HH MM/DD/YYYY":               "it has no month; write MM, which",
		"MM/DD/YYYY hh:mm":            "hh is the hour of a 12-hour clock and needs A for AM or PM; the hours 0 to 23 are HH",
		"MM/DD/YYYY HH:mm A":          "HH is the hour 0 to 23 and says all; the hour beside A is hh",
		"MM/DD/YYYY HH:mm:ss.SSS":     "SSS means nothing: the second is SS or S, its fraction f",
		"MM/DD/YYYYY":                 "YYYYY means nothing: the year is YYYY",
		"DDD MMM YYYY":                "the name of the weekday ddd",
		"MMMMM D YYYY":                "the minute is mm",
		"HHH MM/DD/YYYY":              "the hour is HH or H",
		"MM/DD/YYYY z":                "the offset from UTC is Z",
		"EEE MM/DD/YYYY":              "the name of the weekday is ddd",
		"MM/DD/YYYY pM":               "AM and PM are read by A",
		"DD.MM.YYYY HH:mm Uhr":        "U means nothing",
		"DD.MM.YYYY 'um":              "an apostrophe is not closed",
		"DD.MM.YYYY 'um''":            "an apostrophe is not closed",
		"date":                        "t means nothing",
		"MM/DD/YYYY MM":               "the month is in it twice",
		strings.Repeat(".", 200):      "it has no year",
	} {
		_, err := ParseFormat(text)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("format %q: ", text)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestLongFormat(t *testing.T) {
	if _, err := ParseFormat(strings.Repeat("%Y", 1e6)); err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), "it has 2000000 bytes") {
		t.Error(err)
	}
}

// layouts are formats beside the layout of Go that writes what they read, and
// a regular expression of the values.
func layouts() []struct{ format, layout, pattern string } {
	return []struct{ format, layout, pattern string }{
		{"%Y-%m-%d", "2006-01-02", `\d{4}-\d{1,2}-\d{1,2}`},
		{"%m/%d/%y", "1/2/06", `\d{1,2}/\d{1,2}/\d{2}`},
		{"%a %e %b %Y", "Mon _2 Jan 2006", `(?i)[a-z]+ ([ ]\d|\d{1,2}) [a-z]+ \d{4}`},
		{"%A, %d. %B %Y", "Monday, 2. January 2006", `(?i)[a-z]+, \d{1,2}\. [a-z]+ \d{4}`},
		{"%F %T.%f", "2006-01-02 15:04:05.000000", `\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2}\.\d{1,6}`},
		{"%Y%m%d%H%M%S", "20060102150405", `\d{14}`},
		{"%m/%d/%Y %I:%M:%S %p", "1/2/2006 3:04:05 PM", `(?i)\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{1,2}:\d{1,2} [ap]m`},
		{"%FT%T%z", "2006-01-02T15:04:05-0700", `\d{4}-\d{1,2}-\d{1,2}T\d{1,2}:\d{1,2}:\d{1,2}(Z|[+-]\d\d(:?\d\d)?)`},
		{"MM/DD/YYYY", "01/02/2006", `\d{2}/\d{2}/\d{4}`},
		{"D.M.YY H:mm", "2.1.06 15:04", `\d{1,2}\.\d{1,2}\.\d{2} \d{1,2}:\d{2}`},
		{"dddd, MMMM D, YYYY", "Monday, January 2, 2006", `(?i)[a-z]+, [a-z]+ \d{1,2}, \d{4}`},
		{"YYYY-MM-DD HH:MM:SS", "2006-01-02 15:04:05", `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`},
		{"DD-MMM-YYYY hh:mm:ss.fff A", "02-Jan-2006 03:04:05.000 pm", `(?i)\d\d-[a-z]+-\d{4} \d\d:\d\d:\d\d\.\d{3} [ap]m`},
		{"YYYY-MM-DDTHH:mm:ss.ffffffZ", "2006-01-02T15:04:05.000000Z07:00", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d(:?\d\d)?)`},
	}
}

// same compares parts with a time, to what the layout writes of it.
func same(p Parts, when time.Time, f *Format, layout string) bool {
	_, offset := when.Zone()
	written, err := time.Parse(layout, when.Format(layout)) // without what the layout leaves out
	if err != nil {
		return false
	}
	want := Parts{
		Year: when.Year(), Month: int(when.Month()), Day: when.Day(),
		Hour: written.Hour(), Minute: written.Minute(), Second: written.Second(), Micros: written.Nanosecond() / 1000,
	}
	if strings.HasSuffix(f.String(), "z") || strings.HasSuffix(f.String(), "Z") {
		want.Offset, want.HasOffset = offset, true
	}
	return p == want
}

// TestFormatReadsWhatGoWrites gives random times to package time to write.
func TestFormatReadsWhatGoWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, l := range layouts() {
		f := mustFormat(t, l.format)
		for range 2000 {
			when := time.Unix(r.Int64N(253402300800+62135596800)-62135596800, r.Int64N(1e6)*1000).UTC()
			switch {
			case !strings.Contains(l.layout, "2006"): // of two digits
				when = time.Date(1969+r.IntN(100), 1, 1+r.IntN(365), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
			case r.IntN(2) == 0 && when.Year() > 1 && when.Year() < 9999:
				when = when.In(time.FixedZone("", (r.IntN(2*23*60)-23*60)*60))
			}
			text := when.Format(l.layout)
			p, ok := f.Read([]byte(text))
			if !ok || !same(p, when, f, l.layout) {
				t.Fatalf("%q reads %q as %+v, %v", l.format, text, p, ok)
			}
			// Nothing is left over, and nothing may be missing.
			if _, ok := f.Read([]byte(text + "0")); ok && !strings.HasSuffix(l.format, "f") {
				t.Fatalf("%q reads %q", l.format, text+"0")
			}
		}
	}
}

// FuzzFormatRead compares what fits with regular expressions of the values and
// with the calendar of package time.
func FuzzFormatRead(f *testing.F) {
	all := layouts()
	for i, l := range all {
		f.Add(uint8(i), time.Date(2024, 2, 29, 23, 59, 58, 123456000, time.UTC).Format(l.layout))
		f.Add(uint8(i), "2/30/2024")
	}
	patterns := make([]*regexp.Regexp, len(all))
	for i, l := range all {
		patterns[i] = regexp.MustCompile(`^(?:` + l.pattern + `)$`)
	}
	f.Fuzz(func(t *testing.T, which uint8, v string) {
		i := int(which) % len(all)
		format := mustFormat(t, all[i].format)
		p, ok := format.Read([]byte(v))
		if !ok {
			if when, err := time.Parse(all[i].layout, v); err == nil && when.Format(all[i].layout) == v && when.Year() > 0 {
				t.Errorf("%q does not read %q", all[i].format, v)
			}
			return
		}
		if !patterns[i].MatchString(v) {
			t.Errorf("%q reads %q", all[i].format, v)
		}
		when := time.Date(p.Year, time.Month(p.Month), p.Day, p.Hour, p.Minute, p.Second, p.Micros*1000, time.UTC)
		if when.Year() != p.Year || int(when.Month()) != p.Month || when.Day() != p.Day || when.Hour() != p.Hour || when.Minute() != p.Minute || when.Second() != p.Second {
			t.Errorf("%q reads %q as %+v", all[i].format, v, p)
		}
	})
}

// FuzzParseFormat: whatever a format is, it is refused with its text or reads
// days that exist, and only them.
func FuzzParseFormat(f *testing.F) {
	for _, l := range layouts() {
		f.Add(l.format, "2026-01-15 12:30:59")
		f.Add(l.layout, "x")
	}
	for _, s := range []string{"%", "%%", "'", "''", "'a''b'YYYYMMDD", "AM/PM", "%-", "%-d%-m%Y", "YYYYMMDDffffff", "%Y%m%e"} {
		f.Add(s, " 1")
	}
	f.Fuzz(func(t *testing.T, text, v string) {
		format, err := ParseFormat(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), fmt.Sprintf("format %q: ", text[:min(len(text), 200)])) {
				t.Error(err)
			}
			return
		}
		p, ok := format.Read([]byte(v))
		if !ok {
			return
		}
		when := time.Date(p.Year, time.Month(p.Month), p.Day, p.Hour, p.Minute, p.Second, p.Micros*1000, time.UTC)
		if when.Day() != p.Day || when.Hour() != p.Hour || p.Offset <= -86400 || p.Offset >= 86400 || !format.HasTime() && (p.Hour != 0 || p.HasOffset) {
			t.Errorf("%q reads %q as %+v", text, v, p)
		}
	})
}

// TestFormatAllocates nothing per value.
func TestFormatAllocates(t *testing.T) {
	f, v := mustFormat(t, "%a, %d %B %Y %I:%M:%S.%f %p %z"), []byte("Thu, 15 January 2026 12:30:59.25 PM +05:30")
	if _, ok := f.Read(v); !ok {
		t.Fatal("does not fit")
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = f.Read(v) }); n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}
