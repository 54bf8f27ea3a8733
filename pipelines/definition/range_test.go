package definition

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
)

// TestRangesBeforeNow: what people say of a range stands for the calendar of the account's zone.
func TestRangesBeforeNow(t *testing.T) {
	for _, c := range []struct {
		read           func(string) (Range, error)
		text, now      string
		from, to, fail string
	}{
		{ParseLast, "day", "2026-03-01 10:00:00", "2026-02-28", "2026-03-01", ""},
		{ParseLast, "week", "2026-03-01 10:00:00", "2026-02-16", "2026-02-23", ""}, // on a Sunday
		{ParseLast, "month", "2026-03-31 10:00:00", "2026-02-01", "2026-03-01", ""},
		{ParseLast, "quarter", "2026-01-01 00:00:00", "2025-10-01", "2026-01-01", ""},
		{ParseLast, "year", "2026-03-01 10:00:00", "2025-01-01", "2026-01-01", ""},
		{ParseLast, "2w", "2026-03-15 10:00:00", "2026-03-01", "", ""},
		{ParseLast, "1mo", "2026-03-31 10:00:00", "2026-02-28", "", ""},
		{ParseLast, "1y", "2024-02-29 10:00:00", "2023-02-28", "", ""},
		{ParseLast, "6m", "", "", "", "is minutes, not months; for months write 6mo"},
		{ParseLast, "-7d", "", "", "", "is not a length of time"},
		{ParseThis, "quarter", "2026-06-30 23:59:59", "2026-04-01", "", ""},
		{ParseThis, "week", "2026-03-02 00:00:00", "2026-03-02", "", ""},
		{ParseThis, "today", "", "", "", "is not a unit of the calendar; write one of day, month, quarter, week, year"},
		{through, "2026-10-31", "2026-03-01 10:00:00", "", "2026-11-01", ""},
		{through, "2026-10-31 12:00", "2026-03-01 10:00:00", "", "2026-10-31 12:00:01", ""},
		{through, "-1d", "2026-03-01 10:00:00", "", "2026-03-01", ""},
		{through, "-2", "", "", "", "is not a length of time before now"},
		{through, "tomorrow", "", "", "", "is not a valid date"},
	} {
		r, err := c.read(c.text)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		at := func(text string) (at time.Time) {
			if text != "" {
				at, err = ParseWallTime(text)
			}
			return at
		}
		if got, want := r.In(time.UTC, at(c.now)), (extract.Window{From: at(c.from), To: at(c.to)}); got != want {
			t.Errorf("%s at %s: %s, want %s", c.text, c.now, got, want)
		}
	}
}

func through(s string) (r Range, err error) {
	r.To, err = ParseThrough(s)
	return r, err
}
