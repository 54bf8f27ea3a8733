package schemas

import (
	"fmt"
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

// shown spells what a format reads, "-" for a value that does not fit.
func shown(f *Format, v string) string {
	at, ok := f.Read([]byte(v))
	switch {
	case !ok:
		return "-"
	case f.HasOffset():
		return at.Format("2006-01-02 15:04:05.999999 -07:00")
	case f.HasTime():
		return at.Format("2006-01-02 15:04:05.999999")
	}
	return at.Format(time.DateOnly)
}

// TestFormatReads is what formats read and refuse: "-".
func TestFormatReads(t *testing.T) {
	for _, tt := range []struct{ format, value, want string }{
		{"M/D/YYYY", "12/31/2025", "2025-12-31"},
		{"M/D/YYYY", "1/2/2025", "2025-01-02"},
		{"M/D/YYYY", "01/02/2025", "2025-01-02"},
		{"M/D/YYYY", "31/12/2025", "-"},
		{"M/D/YYYY", "12/31/25", "-"},
		{"M/D/YYYY", "12/31/20255", "-"},
		{"M/D/YYYY", "12/31/2025 ", "-"},
		{"M/D/YYYY", "12/31/2025\n", "-"},
		{"M/D/YYYY", "012/31/2025", "-"},
		{"M/D/YYYY", "+1/2/2025", "-"},
		{"M/D/YYYY", "", "-"},
		{"M/D/YYYY", "2/29/2024", "2024-02-29"},
		{"M/D/YYYY", "2/29/2025", "-"},
		{"M/D/YYYY", "2/29/1900", "-"},
		{"M/D/YYYY", "4/31/2025", "-"},
		{"M/D/YYYY", "0/1/2025", "-"},
		{"M/D/YYYY", "1/0/2025", "-"},
		{"M/D/YYYY", "1/1/0000", "-"},
		{"MM/DD/YYYY", "12/31/2025", "2025-12-31"},
		{"MM/DD/YYYY", "1/02/2025", "-"},
		{"MM/DD/YYYY", "01/2/2025", "-"},
		{"M/D/YY", "01/02/69", "1969-01-02"},
		{"M/D/YY", "01/02/68", "2068-01-02"},
		{"M/D/YY", "01/02/2068", "-"},
		{"YYYYMMDD", "20260115", "2026-01-15"},
		{"YYYYMMDD", "2026115", "-"},
		{"YYYYMMDDHHMMSS", "20260115123059", "2026-01-15 12:30:59"},
		{"D MMM YYYY", "3 MAY 2026", "2026-05-03"},
		{"D MMM YYYY", "03 sep 2026", "2026-09-03"},
		{"D MMM YYYY", "03 September 2026", "-"},
		{"D MMM YYYY", "03 Mai 2026", "-"},
		{"D MMMM YYYY", "03 september 2026", "2026-09-03"},
		{"D MMMM YYYY", "03 Sep 2026", "-"},
		{"ddd, D MMM YYYY", "thu, 15 Jan 2026", "2026-01-15"},
		{"ddd, D MMM YYYY", "Fri, 15 Jan 2026", "-"},
		{"dddd, D MMM YYYY", "THURSDAY, 15 Jan 2026", "2026-01-15"},
		{"dddd, D MMM YYYY", "Friday, 15 Jan 2026", "-"},
		{"dddd, D MMM YYYY", "Thu, 15 Jan 2026", "-"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 12:30:59", "2026-01-15 12:30:59"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 12:30:60", "-"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 24:00:00", "-"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 2:30:59", "-"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 12:30:59.5", "-"},
		{"YYYY-MM-DD HH:MM:SS", "2026-01-15 12:30:59,5", "-"},
		{"YYYY-MM-DD H:mm", "2026-01-15 2:05", "2026-01-15 02:05:00"},
		{"YYYY-MM-DD HH", "2026-01-15 02", "2026-01-15 02:00:00"},
		{"YYYY-MM-DD HH", "2026-01-15 2", "-"},
		{"D.M.YYYY H:m:s", "5.1.2026 7:5:9", "2026-01-05 07:05:09"},
		{"HH:MM:SS MM/DD/YYYY", "12:30:59 01/15/2026", "2026-01-15 12:30:59"},
		{"mm.HH DD MM YYYY", "30.12 15 01 2026", "2026-01-15 12:30:00"},
		{"D.M.YYYY h:mm A", "5.1.2026 12:05 am", "2026-01-05 00:05:00"},
		{"D.M.YYYY h:mm A", "5.1.2026 12:05 PM", "2026-01-05 12:05:00"},
		{"D.M.YYYY h:mmA", "5.1.2026 1:05Pm", "2026-01-05 13:05:00"},
		{"D.M.YYYY h:mm A", "5.1.2026 13:05 PM", "-"},
		{"D.M.YYYY h:mm A", "5.1.2026 00:05 AM", "-"},
		{"D.M.YYYY h:mm A", "5.1.2026 0:05 AM", "-"},
		{"D.M.YYYY h:mm A", "5.1.2026 1:05", "-"},
		{"D.M.YYYY hh:mm A", "5.1.2026 1:05 AM", "-"},
		{"A h YYYY-MM-DD", "PM 11 2026-01-15", "2026-01-15 23:00:00"},
		{"D.M.YYYY HH:mm:ss.f", "5.1.2026 12:30:59.5", "2026-01-05 12:30:59.5"},
		{"D.M.YYYY HH:mm:ss.f", "5.1.2026 12:30:59.000001", "2026-01-05 12:30:59.000001"},
		{"D.M.YYYY HH:mm:ss.f", "5.1.2026 12:30:59.0000010", "-"},
		{"D.M.YYYY HH:mm:ss.f", "5.1.2026 12:30:59.", "-"},
		{"D.M.YYYY HH:mm:ss.f", "5.1.2026 12:30:59", "-"},
		{"D.M.YYYY HH:mm:ss.f", "5.1.2026 12:30:59,5", "-"},
		{"D.M.YYYY HH:mm:ss.fff", "5.1.2026 12:30:59.123", "2026-01-05 12:30:59.123"},
		{"D.M.YYYY HH:mm:ss.fff", "5.1.2026 12:30:59.12", "-"},
		{"D.M.YYYY HH:mm:ss.ffffff", "5.1.2026 12:30:59.123456", "2026-01-05 12:30:59.123456"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59Z", "2026-01-15 12:30:59 +00:00"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59+0530", "2026-01-15 12:30:59 +05:30"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59-05:30", "2026-01-15 12:30:59 -05:30"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59+23:59", "2026-01-15 12:30:59 +23:59"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59-06", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59-06:", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59-06:3", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59-063", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59+24:00", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59+01:60", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59", "-"},
		{"YYYY-MM-DDTHH:mm:ssZ", "2026-01-15T12:30:59z", "-"},
		{"DD.MM.YYYY HH:mm 'Uhr'", "15.01.2026 12:30 Uhr", "2026-01-15 12:30:00"},
		{"DD.MM.YYYY HH:mm 'Uhr'", "15.01.2026 12:30 uhr", "-"},
		{"D 'o''clock' M YYYY", "1 o'clock 2 2026", "2026-02-01"},
		{"D''M''YYYY", "1'2'2026", "2026-02-01"},
		{"'Jan 02' D (M) YYYY.", "Jan 02 5 (1) 2026.", "2026-01-05"},
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
		"":                          "it has no year (MM directly after the hour is the minute); write a format like YYYY-MM-DD HH:mm:ss.f, DD.MM.YYYY or M/D/YYYY h:mm A",
		"MM/DD":                     "it has no year",
		"HH MM/DD/YYYY":             "it has no month (MM directly after the hour is the minute)",
		"MM.YYYY":                   "it has no day",
		"%m/%d/%Y":                  "% stands for no part of a date; write a format like YYYY-MM-DD",
		"2006-01-02":                "it has no year (MM directly after the hour is the minute); write a format like YYYY-MM-DD",
		"Jan 2, 2006":               "J stands for no part of a date; write a format like YYYY-MM-DD",
		"dd.MM.yyyy":                "d stands for no part of a date; write a format like",
		"DD.MM.YYYY HH:mm Uhr":      "U stands for no part",
		"DD.MM.YYYY HH:mm:ss,f":     "f stands for no part",
		"DD.MM.YYYY 'um":            "an apostrophe is not closed",
		"DD.MM.YYYY 'um''":          "an apostrophe is not closed",
		"MM/DD/YYYY MM":             "it has the month twice; remove one",
		"MM/DD/YYYY HH:mm:ss.fffff": "f stands for no part",
		"MM/DD/YYYY HH hh A":        "it has the hour twice",
		"MM/DD/YYYY hh:mm":          "the hours 1 to 12 (hh, h) and AM or PM (A) need each other",
		"MM/DD/YYYY HH:mm A":        "for the hours 0 to 23 write HH or H",
		"MM/DD/YYYY A":              "AM or PM (A) need each other",
		"MM/DD/YYYY mm":             "it has a minute but no hour",
		"MM/DD/YYYY HH:ss":          "it has a second but no minute",
		"MM/DD/YYYY HH:mm.f":        "it has a fraction of the second but no second",
		"YYYYMD":                    "YYYYM can be read in several ways; numbers with nothing between them need all digits",
		" MM/DD/YYYY":               "it begins or ends with a blank",
		"MM/DD/YYYY\xff":            "invalid UTF-8",
	} {
		_, err := ParseFormat(text)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("format %q: ", text)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzParseFormat: whatever a format is, it is refused with its text or reads
// days that exist, and only them.
func FuzzParseFormat(f *testing.F) {
	for _, s := range []string{"%Y-%m-%d", "2006-01-02", "'", "''", "'a''b'YYYYMMDD", "YYYYMMDD", "M/D/YYYY h:mm A", "ddd D MMMM YY HH:mm:ss.fZ"} {
		f.Add(s, "20260115")
	}
	f.Fuzz(func(t *testing.T, text, v string) {
		format, err := ParseFormat(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), fmt.Sprintf("format %q: ", text)) {
				t.Error(err)
			}
			return
		}
		at, ok := format.Read([]byte(v))
		if !ok {
			return
		}
		_, offset := at.Zone()
		if at.Year() < 1 || at.Year() > 9999 || offset != 0 && !format.HasOffset() || !format.HasTime() && at.Unix()%86400 != 0 {
			t.Errorf("%q reads %q as %v", text, v, at)
		}
	})
}
