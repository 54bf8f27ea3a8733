package definition

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
)

func TestParseWallTime(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-01":          "2026-01-01 00:00:00",
		"2024-02-29":          "2024-02-29 00:00:00",
		"2026-03-29 02:30:00": "2026-03-29 02:30:00", // does not exist in Berlin: wall clock is not an instant
		"2026-03-29T02:30:01": "2026-03-29 02:30:01",
		"2026-03-29 02:30":    "2026-03-29 02:30:00",
		"2026-03-29T23:59":    "2026-03-29 23:59:00",
		"0001-01-01":          "0001-01-01 00:00:00",
		"9999-12-31 23:59:59": "9999-12-31 23:59:59",
	} {
		got, err := ParseWallTime(text)
		if err != nil || got.Format(extract.WireTime) != want || got.Location() != time.UTC {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                          "is not a valid date; write",
		"2026-1-1":                  "is not a valid date; write",
		"2026-1-5 6:00":             "is not a valid date; write",
		"2026-2-30":                 "is not a valid date; write",
		"2026-02-29":                "is not a valid date; write",
		"2026-00-01":                "is not a valid date; write",
		"0000-01-01":                "is not a valid date; write",
		"2026-01-01 24:00:00":       "is not a valid date; write",
		"2026-01-01T00:00:60":       "is not a valid date; write",
		"2026-01-01 00:00:00Z":      "is not a valid date; write",
		"2026-01-01T00:00:00-06":    "is not a valid date; write",
		"2026-01-01T00:00:00 +0100": "is not a valid date; write",
		"2026-01-01T00:00:00,25":    "is not a valid date; write",
		"2026-01-01 ":               "is not a valid date; write",
		"2026-01-01t00:00:00":       "is not a valid date; write",
		"yesterday":                 "is not a valid date; write",
		"20260101":                  "is not a valid date; write",
	} {
		if got, err := ParseWallTime(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestParseWindow(t *testing.T) {
	for text, want := range map[string]extract.Period{
		"auto": {}, "1s": {Seconds: 1}, "15m": {Seconds: 900}, "6h": {Seconds: 21600}, "1d": {Days: 1}, "7d": {Days: 7},
		"1mo": {Months: 1}, "12mo": {Months: 12}, "090m": {Seconds: 5400},
	} {
		if got, err := ParseWindow(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "write auto", "0h": "write auto", "1": "write auto", "-1d": "write auto", "1.5h": "write auto", "9999999d": "write auto",
		"1x": "write auto", "0w": "write auto", "Auto": "write auto", "1 day": "write auto", "2 weeks": "write auto",
		"1y": "write auto", "3M": "write auto", "1month": "write auto", "30min": "write auto",
		"6hours": "write auto", "2hrs": "write auto", "90sec": "write auto", "1D": "write auto", "5 S": "write auto",
	} {
		if got, err := ParseWindow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, "12h": 12 * time.Hour, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour,
		"1h30m": 90 * time.Minute, "1d1h1m1s": 25*time.Hour + 61*time.Second,
	} {
		if got, err := ParseSpan(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "3 d", "-3d", "1.5d", "h", "3d3d", "1s1m", "1w", "9999999h9999999h", "999999d", "3D", "+3d"} {
		if got, err := ParseSpan(text); err == nil || !strings.Contains(err.Error(), "such as 3d, 12h or 30s") {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func FuzzParseWallTime(f *testing.F) {
	for _, seed := range []string{"2026-01-01", "2026-01-01 06:00:00", "2026-01-01T06:00:00Z", "2026-13-01", "auto", "1mo", "3d12h", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := ParseWallTime(text); err == nil {
			again, err := ParseWallTime(at.Format(extract.WireTime))
			if err != nil || !again.Equal(at) || at.Nanosecond() != 0 {
				t.Errorf("%q: %v, then %v, %v", text, at, again, err)
			}
		}
		if step, err := ParseWindow(text); err == nil && (step.Seconds < 0 || step.Days < 0 || step.Months < 0 || (step.Auto() != (text == "auto"))) {
			t.Errorf("%q: %+v", text, step)
		}
		if d, err := ParseSpan(text); err == nil && d < 0 {
			t.Errorf("%q: %v", text, d)
		}
	})
}
