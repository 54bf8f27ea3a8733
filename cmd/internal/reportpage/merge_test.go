package reportpage

import (
	"testing"
	"time"

	"github.com/formetl/formetl/pipelines/detail"
)

// TestMerged: spans that share a row lose nothing, and what is no window of the range stays
// apart.
func TestMerged(t *testing.T) {
	for _, windows := range []int{1, 10, 11, 365} {
		seen := seenForm(windows).Spans
		for _, n := range []int{1, 7, 10, 400} {
			var before, after detail.Span
			for _, s := range seen {
				before.Windows, before.Results, before.Asked.Requests = before.Windows+s.Windows, before.Results+s.Results, before.Asked.Requests+s.Asked.Requests
			}
			list := merged(seen, n)
			for i, s := range list {
				after.Windows, after.Results, after.Asked.Requests = after.Windows+s.Windows, after.Results+s.Results, after.Asked.Requests+s.Asked.Requests
				if i > 0 && s.Kind == detail.Dated && !list[i-1].To.Equal(s.From) {
					t.Errorf("%d of %d: a gap before %v", n, windows, s.From)
				}
			}
			if len(list) > n+2 || after.Windows != before.Windows || after.Results != before.Results || after.Asked.Requests != before.Asked.Requests {
				t.Errorf("%d of %d: %d rows, %+v of %+v", n, windows, len(list), after, before)
			}
		}
	}
}

// TestStretches: days that are too many for bars share them, week by week.
func TestStretches(t *testing.T) {
	for _, c := range []struct{ days, bars, want, unit int }{{1, 400, 1, 1}, {366, 400, 366, 1}, {366, 100, 53, 7}, {4018, 400, 288, 14}, {4018, 16, 16, 252}} {
		days := make([]detail.Day, 0, c.days)
		for i := range c.days {
			days = append(days, detail.Day{Day: day(i), Rows: 2, Rejected: 1})
		}
		list, unit := stretches(days, c.bars)
		var rows int64
		for _, s := range list {
			rows += s.Rows
			if unit > 1 && s.Day.Weekday() != time.Monday {
				t.Errorf("%+v: a week begins on %v", c, s.Day)
			}
		}
		if len(list) != c.want || unit != c.unit || rows != int64(2*c.days) {
			t.Errorf("%+v: %d bars of %d days with %d rows", c, len(list), unit, rows)
		}
	}
}

// TestWords: numbers are short and never claim more than there is.
func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		percent(0, 10): "0 %", percent(10, 10): "100 %", percent(9999, 10000): "> 99.9 %", percent(1, 100000): "< 0.1 %", percent(1, 3): "33 %", percent(1, 20): "5.0 %",
		took(999 * time.Millisecond): "999 ms", took(-1): "0 s", took(61 * time.Second): "1 min 1 s", took(3*time.Hour + 5*time.Minute): "3 h 5 min",
		wall(day(0)): "2026-01-01", wall(day(0).Add(time.Hour)): "2026-01-01 01:00:00", clip(2, "äöü"): "äö…", clip(3, "äöü"): "äöü",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for most, want := range map[int64]int64{0: 1, 1: 1, 5: 1, 6: 1, 7: 2, 100: 20, 121: 50, 4000: 1000, 123_456_789: 50_000_000} {
		if got := niceStep(most); got != want || most > 7*got {
			t.Errorf("the axis up to %d has steps of %d, want %d", most, got, want)
		}
	}
	for _, all := range []time.Duration{time.Millisecond, time.Second, 90 * time.Second, 7 * time.Hour, 400 * 24 * time.Hour} {
		step, unit, name := clock(all).marks()
		if n := all / step; n < 1 || n > 10 || step%unit != 0 {
			t.Errorf("an axis of %s has %d steps of %s in %s", all, n, step, name)
		}
	}
}
