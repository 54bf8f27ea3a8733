package extract

import (
	"slices"
	"testing"
	"time"
)

func TestHalve(t *testing.T) {
	for _, tc := range []struct{ from, to, want string }{
		{"1970-01-01", "2026-06-01", "1984-01-01"}, // the only multiple of 64 years inside
		{"1985-01-01", "2026-06-01", "2016-01-01"},
		{"2020-01-01", "2026-01-01", "2024-01-01"},
		{"2025-01-01", "2026-01-01", "2025-07-01"},
		{"2025-01-01", "2026-01-02", "2026-01-01"},
		{"2025-07-01", "2026-01-01", "2025-10-01"},
		{"2026-01-01", "2026-04-01", "2026-02-01"}, // of two that are as near, the earlier,
		{"2026-02-01", "2026-03-01", "2026-02-17"},
		{"2026-01-17", "2026-02-01", "2026-01-25"},
		{"2026-01-29", "2026-02-01", "2026-01-31"},
		{"2026-01-01", "2026-01-02", "2026-01-01 12:00:00"},
		{"2026-01-01 23:59:59", "2026-01-02 00:00:01", "2026-01-02"},
		{"2026-01-01 12:00:00", "2026-01-01 18:00:00", "2026-01-01 15:00:00"},
		{"2026-01-01 12:00:00", "2026-01-01 12:00:02", "2026-01-01 12:00:01"},
		{"2026-01-01 12:00:00", "2026-01-01 12:00:01", ""},
	} {
		got, ok := halve(Window{wallTime(t, tc.from), wallTime(t, tc.to)})
		if want := tc.want; ok != (want != "") || ok && !got.Equal(wallTime(t, want)) {
			t.Errorf("halve(%s, %s) = %s, %v; want %q", tc.from, tc.to, got.Format(WireTime), ok, want)
		}
	}
}

// TestLevelsNest: each level's boundaries are boundaries of all finer ones.
func TestLevelsNest(t *testing.T) {
	for i, coarse := range levels {
		b := wallTime(t, "1969-01-01")
		for range 300 {
			next := coarse(b)
			if !next.After(b) {
				t.Fatalf("level %d: after %s comes %s", i, b, next)
			}
			b = next
			for j, fine := range levels[i:] {
				if got := fine(b.Add(-time.Second)); !got.Equal(b) {
					t.Fatalf("%s is a boundary of level %d, but level %d goes on to %s", b, i, i+j, got)
				}
			}
		}
	}
}

// leaves halves a window until no piece is longer than least.
func leaves(from, to time.Time, least time.Duration) []time.Time {
	middle, ok := halve(Window{from, to})
	if !ok || to.Sub(from) <= least {
		return nil
	}
	return slices.Concat(leaves(from, middle, least), []time.Time{middle}, leaves(middle, to, least))
}

// TestCutsDoNotDependOnTheEnd: where a range goes on, the cuts that are deep
// inside stay where they were.
func TestCutsDoNotDependOnTheEnd(t *testing.T) {
	from := wallTime(t, "2023-03-05 07:00:00")
	to := wallTime(t, "2026-02-11 13:37:11")
	want := leaves(from, to, 31*24*time.Hour)
	for _, longer := range []time.Duration{time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour, 4000 * 24 * time.Hour} {
		got := leaves(from, to.Add(longer), 31*24*time.Hour)
		got = slices.DeleteFunc(got, func(b time.Time) bool { return !b.Before(wallTime(t, "2026-01-01")) })
		inside := slices.DeleteFunc(slices.Clone(want), func(b time.Time) bool { return !b.Before(wallTime(t, "2026-01-01")) })
		if !slices.Equal(got, inside) {
			t.Errorf("longer by %s: cuts %v\nwere %v", longer, got, inside)
		}
	}
}

func FuzzHalve(f *testing.F) {
	f.Add(int64(0), int64(2))
	f.Add(int64(1_767_225_600), int64(31_536_000))
	f.Add(int64(-86_400), int64(172_801))
	f.Add(int64(951_782_400), int64(86_400)) // 2000-02-29
	f.Fuzz(func(t *testing.T, start, length int64) {
		const span = 200 * 366 * 86400
		from := time.Unix(start%span, 0).UTC()
		to := from.Add(time.Duration(2+(length%span+span)%span) * time.Second)
		b, ok := halve(Window{from, to})
		if !ok || !from.Before(b) || !b.Before(to) || b.Nanosecond() != 0 {
			t.Fatalf("halve(%s, %s) = %s, %v", from, to, b, ok)
		}
		// No coarser level has a boundary inside, and none of the same level
		// lies nearer the middle.
		middle := from.Add(to.Sub(from) / 2)
		for _, next := range levels {
			if first := next(from); first.Before(to) {
				for c := first; c.Before(to); c = next(c) {
					if distance(c, middle) < distance(b, middle) {
						t.Fatalf("halve(%s, %s) = %s, though %s is as coarse and nearer the middle", from, to, b, c)
					}
				}
				break
			}
		}
	})
}

func TestUnitCut(t *testing.T) {
	for _, tc := range []struct {
		unit     Unit
		from, to string
		want     int
		second   string // where the second window begins
	}{
		{UnitNone, "2026-01-01", "2027-01-01", 1, ""},
		{UnitDay, "2024-02-28 12:00:00", "2024-03-01 00:00:01", 3, "2024-02-29"},
		{UnitDay, "2026-01-01", "2026-01-02", 1, ""},
		{UnitMonth, "2023-12-31 23:59:59", "2024-03-01", 3, "2024-01-01"},
		{UnitMonth, "2024-01-31", "2024-02-29", 2, "2024-02-01"},
		{UnitYear, "1999-12-31", "2001-01-01 00:00:01", 3, "2000-01-01"},
	} {
		from, to := wallTime(t, tc.from), wallTime(t, tc.to)
		ws := tile(Window{from, to}, tc.unit.period())
		if len(ws) != tc.want || tc.unit.Spans(Window{from, to}) != tc.want {
			t.Errorf("%v, %s to %s: %d windows, spans %d; want %d", tc.unit, tc.from, tc.to, len(ws), tc.unit.Spans(Window{from, to}), tc.want)
		}
		at := from
		for i, w := range ws {
			if !w.From.Equal(at) || !w.From.Before(w.To) {
				t.Errorf("window %d is %s, the one before ends at %s", i, w, at)
			}
			if i > 0 && !tc.unit.Start(w.From).Equal(w.From) {
				t.Errorf("window %d begins at %s, within a unit", i, w.From)
			}
			at = w.To
		}
		if !at.Equal(to) {
			t.Errorf("the last window ends at %s, want %s", at, to)
		}
		if tc.second != "" && !ws[1].From.Equal(wallTime(t, tc.second)) {
			t.Errorf("the second window begins at %s, want %s", ws[1].From, tc.second)
		}
	}
}

func TestStep(t *testing.T) {
	for _, tc := range []struct {
		period          Period
		name            string
		at, start, next string
	}{
		{Period{Seconds: 900}, "15m", "2026-01-01 00:14:59", "2026-01-01", "2026-01-01 00:15:00"},
		{Period{Seconds: 900}, "15m", "2026-01-01 00:15:00", "2026-01-01 00:15:00", "2026-01-01 00:30:00"},
		{Period{Seconds: 6 * 3600}, "6h", "2026-01-01 23:59:59", "2026-01-01 18:00:00", "2026-01-02"},
		{Period{Seconds: 1}, "1s", "2026-01-01 23:59:59", "2026-01-01 23:59:59", "2026-01-02"},
		{Period{Seconds: 3600}, "1h", "1965-01-01 00:30:00", "1965-01-01", "1965-01-01 01:00:00"},
		{Period{Days: 1}, "1d", "2024-02-28 23:59:59", "2024-02-28", "2024-02-29"},
		{Period{Days: 1}, "1d", "2023-02-28 23:59:59", "2023-02-28", "2023-03-01"},
		{Period{Days: 1}, "1d", "2025-12-31 12:00:00", "2025-12-31", "2026-01-01"},
		{Period{Days: 7}, "7d", "2026-01-04 23:59:59", "2025-12-29", "2026-01-05"},
		{Period{Days: 7}, "7d", "2026-01-05", "2026-01-05", "2026-01-12"},
		{Period{Days: 7}, "7d", "1969-12-28", "1969-12-22", "1969-12-29"},
		{Period{Months: 1}, "1mo", "2024-02-29 12:00:00", "2024-02-01", "2024-03-01"},
		{Period{Months: 1}, "1mo", "2025-12-31 23:59:59", "2025-12-01", "2026-01-01"},
		{Period{Months: 3}, "3mo", "2026-05-31", "2026-04-01", "2026-07-01"},
		{Period{Months: 12}, "12mo", "2026-05-31", "2026-01-01", "2027-01-01"},
	} {
		at := wallTime(t, tc.at)
		if tc.period.String() != tc.name || tc.period.Auto() {
			t.Errorf("%+v is called %s", tc.period, tc.period)
		}
		if got := tc.period.Start(at); !got.Equal(wallTime(t, tc.start)) {
			t.Errorf("%s: start of %s is %s, want %s", tc.period, tc.at, got, tc.start)
		}
		if got := tc.period.next(at); !got.Equal(wallTime(t, tc.next)) {
			t.Errorf("%s: after %s comes %s, want %s", tc.period, tc.at, got, tc.next)
		}
	}
	if (Period{}).String() != "auto" || !(Period{}).Auto() {
		t.Error("the zero Period is auto")
	}
	for at := wallTime(t, "2026-01-05"); at.Before(wallTime(t, "2030-01-01")); at = (Period{Days: 7}).next(at) {
		if at.Weekday() != time.Monday {
			t.Fatalf("a week begins on %s", at)
		}
	}
}

func TestWindowString(t *testing.T) {
	w := day(t, "2026-01-01", "2026-02-01")
	for want, w := range map[string]Window{
		"2026-01-01 00:00:00/2026-02-01 00:00:00": w,
		"../2026-02-01 00:00:00":                  {To: w.To},
		"2026-01-01 00:00:00/..":                  {From: w.From},
		"../..":                                   {},
	} {
		if w.String() != want {
			t.Errorf("%q, want %q", w, want)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add(int64(1_767_225_600), 1, uint8(0))
	f.Add(int64(-1), 7, uint8(1))
	f.Add(int64(951_782_399), 900, uint8(2))
	f.Fuzz(func(t *testing.T, at int64, size int, kind uint8) {
		size = 1 + (size%1000+1000)%1000
		s := [...]Period{{Months: size}, {Days: size}, {Seconds: size}}[kind%3]
		tm := time.Unix(at%(200*366*86400), 0).UTC()
		start, next := s.Start(tm), s.next(tm)
		if start.After(tm) || !next.After(tm) {
			t.Fatalf("%s around %s: %s to %s", s, tm, start, next)
		}
		if got := s.Start(next); !got.Equal(next) {
			t.Fatalf("%s: %s is a boundary, but its start is %s", s, next, got)
		}
		if got := s.next(start); !got.Equal(next) {
			t.Fatalf("%s: %s to %s, but next of the start is %s", s, start, next, got)
		}
	})
}

// wallTime parses a wall-clock time.
func wallTime(t testing.TB, s string) time.Time {
	t.Helper()
	layout := WireTime
	if len(s) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	v, err := time.Parse(layout, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func day(t testing.TB, from, to string) Window {
	t.Helper()
	return Window{wallTime(t, from), wallTime(t, to)}
}
