package transform

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/schemas"
)

func stamp(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z")
}

// TestTimestampDST reads wall clocks around both changes, in zones whose
// changes differ: by an hour, by half an hour, at midnight, by a whole day.
func TestTimestampDST(t *testing.T) {
	for _, tt := range []struct {
		zone, wall, want string
		shifted          bool
	}{
		{"America/Chicago", "2026-01-15 12:00:00", "2026-01-15T18:00:00Z", false},
		{"America/Chicago", "2026-07-15 12:00:00", "2026-07-15T17:00:00Z", false},
		// Forward: 02:00 CST is 03:00 CDT; 02:30 is read as CST, which is 03:30 CDT.
		{"America/Chicago", "2026-03-08 01:59:59", "2026-03-08T07:59:59Z", false},
		{"America/Chicago", "2026-03-08 02:00:00", "2026-03-08T08:00:00Z", true},
		{"America/Chicago", "2026-03-08 02:30:00", "2026-03-08T08:30:00Z", true},
		{"America/Chicago", "2026-03-08 02:59:59", "2026-03-08T08:59:59Z", true},
		{"America/Chicago", "2026-03-08 03:00:00", "2026-03-08T08:00:00Z", false},
		// Back: 02:00 CDT is 01:00 CST; the hour before is read as its first pass.
		{"America/Chicago", "2026-11-01 00:59:59", "2026-11-01T05:59:59Z", false},
		{"America/Chicago", "2026-11-01 01:00:00", "2026-11-01T06:00:00Z", false},
		{"America/Chicago", "2026-11-01 01:59:59", "2026-11-01T06:59:59Z", false},
		{"America/Chicago", "2026-11-01 02:00:00", "2026-11-01T08:00:00Z", false},
		{"Europe/Berlin", "2026-03-29 02:15:00", "2026-03-29T01:15:00Z", true},
		{"Europe/Berlin", "2026-10-25 02:15:00", "2026-10-25T00:15:00Z", false},
		{"Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z", false},
		// Half an hour: only part of the hour is skipped or repeated.
		{"Australia/Lord_Howe", "2026-10-04 02:15:00", "2026-10-03T15:45:00Z", true},
		{"Australia/Lord_Howe", "2026-10-04 02:30:00", "2026-10-03T15:30:00Z", false},
		{"Australia/Lord_Howe", "2026-04-05 01:15:00", "2026-04-04T14:15:00Z", false},
		{"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-04T14:45:00Z", false},
		{"Australia/Lord_Howe", "2026-04-05 02:00:00", "2026-04-04T15:30:00Z", false},
		// Samoa had no 30 December 2011.
		{"Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30T22:00:00Z", true},
		{"Pacific/Apia", "2011-12-31 00:00:00", "2011-12-30T10:00:00Z", false},
		{"Asia/Kathmandu", "2026-01-01 00:00:00", "2025-12-31T18:15:00Z", false},
		{"Asia/Manila", "1800-01-01 00:00:00", "1800-01-01T15:56:08Z", false}, // local mean time, -15:56:08
		{"UTC", "0001-01-01 00:00:00", "0001-01-01T00:00:00Z", false},
		{"UTC", "9999-12-31 23:59:59", "9999-12-31T23:59:59Z", false},
		{"America/New_York", "2100-07-01 00:00:00", "2100-07-01T04:00:00Z", false}, // by the rule, beyond the table
	} {
		c := clock{zone: zone(t, tt.zone)}
		for range 2 { // the second time from what the clock remembers
			micros, shifted, reason := c.parseTimestamp([]byte(tt.wall))
			if got := stamp(micros); got != tt.want || shifted != tt.shifted || reason != "" {
				t.Errorf("%s %s = %s, shifted %v, %q; want %s, %v", tt.zone, tt.wall, got, shifted, reason, tt.want, tt.shifted)
			}
		}
	}
}

func TestTimestampForms(t *testing.T) {
	c := clock{zone: zone(t, "America/Chicago")}
	for text, want := range map[string]string{
		"2026-01-15 12:00:00":              "2026-01-15T18:00:00Z",
		"2026-01-15T12:00:00":              "2026-01-15T18:00:00Z",
		"2026-01-15 12:00:00.5":            "2026-01-15T18:00:00.5Z",
		"2026-01-15 12:00:00.123456000":    "2026-01-15T18:00:00.123456Z",
		"2026-01-15T12:00:00Z":             "2026-01-15T12:00:00Z",
		"2026-01-15T12:00:00+05:30":        "2026-01-15T06:30:00Z",
		"2026-01-15 12:00:00.000001-01:00": "2026-01-15T13:00:00.000001Z",
		"1969-12-31T23:59:59.999999Z":      "1969-12-31T23:59:59.999999Z",
		"2024-02-29 00:00:00":              "2024-02-29T06:00:00Z",
	} {
		micros, shifted, reason := c.parseTimestamp([]byte(text))
		if got := stamp(micros); got != want || shifted || reason != "" {
			t.Errorf("%q = %s, %q; want %s", text, got, reason, want)
		}
	}
	for _, text := range []string{
		"", "2026-01-15", "2026-01-15 12:00", "2026-01-15 12:00:0", "2026-01-15_12:00:00", "2026-01-15 24:00:00", "2026-01-15 12:60:00",
		"2026-01-15 12:00:60", "2026-13-01 00:00:00", "2026-02-29 00:00:00", "0000-00-00 00:00:00", "0000-01-01 00:00:00", "01/15/2026 12:00:00",
		"2026-01-15 12:00:00.", "2026-01-15 12:00:00.1234567", "2026-01-15 12:00:00 ", "2026-01-15 12:00:00z", "2026-01-15 12:00:00+0530",
		"2026-01-15 12:00:00+24:00", "2026-01-15 12:00:00+05:60", "2026-01-15 12:00:00+05-30", "2026-01-15 12:00:00 +05:30", "2026-01-15 1a:00:00",
		"+026-01-15 12:00:00", "2026-01-15 12-00-00", "2026-01-15  2:00:00", "12026-01-15 12:00:00",
	} {
		if micros, _, reason := c.parseTimestamp([]byte(text)); reason != reasonTimestamp {
			t.Errorf("%q = %s, %q", text, stamp(micros), reason)
		}
	}
}

// TestYearsOutside1To9999 in UTC or in the account's zone fit no column, because no file
// can show them. They are counted, and never break a file.
func TestYearsOutside1To9999(t *testing.T) {
	for _, tt := range []struct {
		zone, text string
		fits       bool
	}{
		{"America/Chicago", "9999-12-31 17:59:59", true},
		{"America/Chicago", "9999-12-31 18:00:00", false}, // 10000 in UTC
		{"America/Chicago", "9999-12-31T23:59:59.999999Z", true},
		{"America/Chicago", "9999-12-31T23:59:59-00:01", false},
		{"America/Chicago", "0001-01-01 00:00:00", true},
		{"America/Chicago", "0001-01-01T00:00:00Z", false}, // the year 0 in Chicago
		{"Australia/Sydney", "9999-12-31 23:59:59", true},
		{"Australia/Sydney", "9999-12-31T13:00:00Z", false}, // 10000 in Sydney
		{"Australia/Sydney", "9999-12-31T12:59:59Z", true},
		{"Australia/Sydney", "0001-01-01 00:00:00", false}, // the year 0 in UTC
		{"Australia/Sydney", "0001-01-01 12:00:00", true},
		{"UTC", "0001-01-01 00:00:00", true},
		{"UTC", "0001-01-01T00:00:00+00:01", false},
		{"UTC", "9999-12-31 23:59:59.999999", true},
	} {
		for kind, r := range map[string]schemas.Reading{"sent": {}, "declared": {Formats: []string{"YYYY-MM-DD HH:mm:SS", "YYYY-MM-DDTHH:mm:SSZ", "YYYY-MM-DDTHH:mm:SS.fZ", "YYYY-MM-DD HH:mm:SS.f"}}} {
			f, c := flattenerOf(t, "timestamp", r)
			f.row.clock = clock{zone: zone(t, tt.zone)}
			if _, _, reason := f.row.parse(c, []byte(tt.text)); (reason == "") != tt.fits || reason != "" && reason != reasonYear {
				t.Errorf("%s in %s, %s: %q", tt.text, tt.zone, kind, reason)
			}
		}
	}
	s := schema(t, "id result_id int64", "at meta:date_finish timestamp set_null", "born item:1 timestamp")
	p := new(answer).result(1, "meta:date_finish=9999-12-31 20:00:00").result(2, "item:1=9999-12-31T23:00:00-02:00").page(t)
	r := start(t, s, func(o *Options) { o.Zone = zone(t, "America/Chicago") }).feed(t, p)
	r.wantRows(t, "1 · ∅ · ∅")
	if s := r.Stats(); s.Nulled[Fault{"at", reasonYear}] != 1 || s.Rejects[Fault{"born", reasonYear}] != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestShiftedIsCounted(t *testing.T) {
	s := schema(t, "id result_id int64", "at meta:date_finish timestamp", "all item:1 list<timestamp>")
	p := new(answer).
		result(1, "meta:date_finish=2026-03-08 02:30:00", "item:1=2026-03-08 02:00:00|2026-03-08 03:00:00").
		result(2, "meta:date_finish=2026-03-08 04:30:00").page(t)
	r := start(t, s, func(o *Options) { o.Zone = zone(t, "America/Chicago") }).feed(t, p)
	r.wantRows(t, `1 · 2026-03-08T08:30:00Z · [2026-03-08T08:00:00Z 2026-03-08T08:00:00Z]`, `2 · 2026-03-08T09:30:00Z · ∅`)
	if got := r.Stats().Shifted; len(got) != 2 || got["at"] != 1 || got["all"] != 1 {
		t.Errorf("shifted %v", got)
	}
}

// TestDaysFromCivil compares every day of four centuries and the ends of the
// range with package time.
func TestDaysFromCivil(t *testing.T) {
	check := func(day time.Time) {
		text := day.Format(time.DateOnly)
		got, reason := parseDate([]byte(text))
		if reason != "" || int64(got) != floorDiv(day.Unix(), daySeconds) {
			t.Fatalf("parseDate(%s) = %d, %q; want %d", text, got, reason, floorDiv(day.Unix(), daySeconds))
		}
	}
	for day := time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2200; day = day.AddDate(0, 0, 1) {
		check(day)
	}
	check(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	check(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
}

func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"2026-02-28", "2024-02-29", "1900-02-29", "0000-01-01", "2026-1-1", "2026/01/01", "9999-12-31", "٢٠٢٦-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, reason := parseDate([]byte(s))
		want, err := time.Parse(time.DateOnly, s)
		fits := err == nil && want.Year() >= 1
		if (reason == "") != fits || fits && int64(got) != floorDiv(want.Unix(), daySeconds) {
			t.Errorf("parseDate(%q) = %d, %q; time: %v, %v", s, got, reason, want, err)
		}
	})
}

var fuzzZones = []string{"UTC", "America/Chicago", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca", "America/St_Johns"}

// FuzzTimestamp compares with package time: which texts are times, that the
// instant shows the wall clock again, that no earlier instant does, and that
// only a time that the zone skips is shifted.
func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{"2026-03-08 02:30:00", "2026-11-01 01:30:00", "2011-12-30 12:00:00", "2026-10-04 02:10:00", "2026-01-01T00:00:00Z", "2026-01-01 00:00:00.25", "0001-10-01  0:00:00", "x"} {
		for i := range fuzzZones {
			f.Add(s, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, s string, z uint8) {
		loc := zone(t, fuzzZones[int(z)%len(fuzzZones)])
		c := clock{zone: loc}
		micros, shifted, reason := c.parseTimestamp([]byte(s))
		wall, err := time.Parse("2006-01-02 15:04:05", strings.Replace(s, "T", " ", 1))
		// Package time also takes hours of one digit: what it takes must be
		// what it writes.
		if err != nil || wall.Year() < 1 || wall.Format("2006-01-02 15:04:05") != strings.Replace(s, "T", " ", 1) {
			if reason == "" && len(s) == len("2006-01-02 15:04:05") {
				t.Errorf("parseTimestamp(%q) = %s; time: %v", s, stamp(micros), err)
			}
			return
		}
		if reason == reasonYear && (wall.Year() == 1 || wall.Year() == 9999) {
			return
		}
		if reason != "" {
			t.Fatalf("parseTimestamp(%q): %s", s, reason)
		}
		again, _, _ := c.parseTimestamp([]byte(s))
		got := time.UnixMicro(micros).In(loc)
		shows := func(x time.Time) bool { return x.Format("2006-01-02 15:04:05") == wall.Format("2006-01-02 15:04:05") }
		if again != micros || shows(got) == shifted {
			t.Errorf("%q in %s = %v, shifted %v, then %s", s, loc, got, shifted, stamp(again))
		}
		for _, back := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
			if shows(got.Add(-back)) {
				t.Errorf("%q in %s = %v is not the first pass", s, loc, got)
			}
		}
	})
}
