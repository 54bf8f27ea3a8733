package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas/plain"
)

// Known returns the number n with grouped digits, or otherwise if n is nil.
func Known(n *int64, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return plain.Thousands(*n)
}

// Counts is a list of what was done, such as "1 interrupted write finished; 3 leftovers removed".
type Counts []string

// Add adds a number of things and what became of them, such as "removed", unless n is 0.
func (c *Counts) Add(n int, noun, became string) {
	if n > 0 {
		*c = append(*c, plain.Plural(n, noun)+" "+became)
	}
}

// Or returns the list as text, or none if the list is empty.
func (c Counts) Or(none string) string {
	return cmp.Or(strings.Join(c, "; "), none)
}

// Size returns a number of bytes in the largest unit that it fills, up to GB.
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

// Range returns a half-open range of wall-clock time as text. A range without a beginning begins
// at the first result, one without an end ends with the last.
func Range(r load.Range) string {
	if r.To.IsZero() {
		return Beginning(r.From) + " to the last result"
	}
	return Beginning(r.From) + " to " + r.To.String() + " (exclusive)"
}

// Covered returns the range that the parts of a manifest cover, as text, and how many of its results
// were rejected. If the parts are of several runs, it is more than the range of the manifest's own run.
func Covered(m *load.Manifest) string {
	covered, undated := m.Covers()
	if !covered.To.IsZero() && m.Watermark.After(covered.To.Time) {
		covered.To = m.Watermark // nothing newer came since the last part
	}
	text := Range(covered)
	if undated {
		text += " and those without a date"
	}
	if m.Rejected > 0 {
		text += ", besides " + plain.Plural(m.Rejected, "rejected result")
	}
	return text
}

// Beginning returns as text when a range begins; for the zero time that is "the first result".
func Beginning(t load.WallTime) string {
	if t.IsZero() {
		return "the first result"
	}
	return t.String()
}

// Since returns a time and how long ago it was, as text.
func Since(now, then time.Time) string {
	return then.UTC().Format(time.RFC3339) + " (" + Ago(now.Sub(then)) + ")"
}

// Ago says how long ago something was; a negative duration lies in the future.
func Ago(d time.Duration) string {
	if d < 0 {
		return plain.Lasting(-d) + " from now"
	}
	return plain.Lasting(d) + " ago"
}

// FirstInstant returns the instant at which the clocks of a zone show a wall-clock time, the
// first of the two if they show it twice.
func FirstInstant(w load.WallTime, zone *time.Location) time.Time {
	return time.Unix(w.Unix()-page.ReadWall(w.Unix(), zone).Offset, 0).In(zone)
}
