package report

import (
	"fmt"
	"html/template"
	"reflect"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas/plain"
)

// words are the functions with which page.html formats numbers and times.
var words = template.FuncMap{
	"n":          thousands,
	"some":       some,
	"fromTo":     func(r load.Range) string { return fromTo(r.From.Time, r.To.Time) },
	"plural":     func(n any, noun string) string { return plain.Plural(reflect.ValueOf(n).Int(), noun) },
	"known":      console.Known,
	"difference": difference,
	"size":       console.Size,
	"took":       took,
	"minus":      func(a, b int64) int64 { return a - b },
	"instant":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"clip":       func(n int, s string) string { return plain.Cut(s, n) },
	"more":       more,
	"outcome":    outcome,
}

// thousands returns an integer of any type with grouped digits.
func thousands(n any) string { return plain.Thousands(reflect.ValueOf(n).Int()) }

// some returns a number with grouped digits, and "" for 0: zeros would hide the numbers of a table.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return plain.Thousands(n)
}

// difference returns by how much the number done differs from the planned one, as text.
func difference(planned *int64, done int64) string {
	if planned == nil {
		return ""
	}
	sign, d := "+", done-*planned
	switch {
	case d == 0:
		return "as planned"
	case d < 0:
		sign, d = "−", -d
	}
	text := sign + plain.Thousands(d)
	if *planned > 0 {
		text += fmt.Sprintf(" (%s%.1f %%)", sign, 100*float64(d)/float64(*planned))
	}
	return text
}

// took returns a duration for people: in whole seconds, or in milliseconds if it is short.
func took(d time.Duration) string {
	unit := time.Second
	if d < time.Minute {
		unit = time.Millisecond
	}
	return max(0, d).Round(unit).String()
}

// wall returns a wall-clock time as text, without the time of day if that is midnight.
func wall(t time.Time) string { return strings.TrimSuffix(load.Wall(t).String(), " 00:00:00") }

// fromTo returns as text when a range begins and ends.
func fromTo(from, to time.Time) string {
	begin, end := "the first result", "the last result"
	if !from.IsZero() {
		begin = wall(from)
	}
	if !to.IsZero() {
		end = wall(to)
	}
	return begin + " to " + end
}

// more returns how many things of a list are not shown, as text; "" if all are shown.
func more(all, shown int, what string) string {
	if all <= shown {
		return ""
	}
	return "and " + plain.Plural(all-shown, "more "+what)
}
