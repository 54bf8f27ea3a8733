package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
)

// Plural is a number and its noun: "1 form", "2,000 forms".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands groups digits: 1,234,567.
func Thousands[N int | int64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Known is a number of things, and otherwise where it is not known.
func Known(n *int64, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return Thousands(*n)
}

// Counts is a list such as "1 commit finished; 3 leftovers removed".
type Counts []string

// Add adds a number and what became of it, unless the number is 0.
func (c *Counts) Add(n int, noun, became string) {
	if n > 0 {
		*c = append(*c, Plural(n, noun)+" "+became)
	}
}

// Or is the list as text, or none where the list is empty.
func (c Counts) Or(none string) string {
	return cmp.Or(strings.Join(c, "; "), none)
}

// Size is a number of bytes in the largest unit that it fills, up to GB.
func Size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Range is a half-open range of wall-clock time; without a beginning it begins
// at the first result.
func Range(r load.Range) string {
	return Beginning(r.From) + " to " + r.To.String() + " (exclusive)"
}

// Covered is the range that the parts of a manifest cover, which is more than its run's if
// they are of several runs.
func Covered(m *load.Manifest) string {
	covered, undated := m.Covers()
	if undated {
		return Range(covered) + " and without a date"
	}
	return Range(covered)
}

// Beginning is the wall-clock time that a range begins at.
func Beginning(t load.WallTime) string {
	if t.IsZero() {
		return "the first result"
	}
	return t.String()
}

// Since is a time and how long ago it was.
func Since(now, then time.Time) string {
	return then.UTC().Format(time.RFC3339) + " (" + Ago(now.Sub(then)) + ")"
}

// Ago is how long ago something was; a negative length lies in the future.
func Ago(d time.Duration) string {
	if d < 0 {
		return lasting(-d) + " from now"
	}
	return lasting(d) + " ago"
}

// lasting is a length of time in one unit.
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return Plural(int(d/time.Second), "second")
	case d < 2*time.Hour:
		return Plural(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return Plural(int(d/time.Hour), "hour")
	}
	return Plural(int(d/(24*time.Hour)), "day")
}

// FirstInstant is when the clocks of a zone show a wall-clock time, and the
// first of both instants where they show it twice.
func FirstInstant(w load.WallTime, zone *time.Location) time.Time {
	return time.Unix(w.Unix()-page.ReadWall(w.Unix(), zone).Offset, 0).In(zone)
}
