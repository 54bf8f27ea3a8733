package report

import (
	"fmt"
	"html/template"
	"reflect"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
)

// words are the functions by which page.html says numbers and times.
var words = template.FuncMap{
	"n":          thousands,
	"some":       some,
	"fromTo":     func(r load.Range) string { return fromTo(r.From.Time, r.To.Time) },
	"plural":     func(n any, noun string) string { return console.Plural(reflect.ValueOf(n).Int(), noun) },
	"known":      console.Known,
	"difference": difference,
	"size":       console.Size,
	"took":       took,
	"minus":      func(a, b int64) int64 { return a - b },
	"instant":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"clip":       clip,
	"more":       more,
	"outcome":    outcome,
}

// thousands is a number of any type of whole numbers.
func thousands(n any) string { return console.Thousands(reflect.ValueOf(n).Int()) }

// some is a number, and nothing for 0, which would hide the others of a table.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return console.Thousands(n)
}

// difference is by how much the fact differs from the plan.
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
	text := sign + console.Thousands(d)
	if *planned > 0 {
		text += fmt.Sprintf(" (%.1f %%)", 100*float64(d)/float64(*planned))
	}
	return text
}

// took is a length of time for people: whole seconds, of a short one milliseconds.
func took(d time.Duration) string {
	unit := time.Second
	if d < time.Minute {
		unit = time.Millisecond
	}
	return max(0, d).Round(unit).String()
}

// wall is a wall-clock time, without its clock where that is midnight.
func wall(t time.Time) string { return strings.TrimSuffix(load.Wall(t).String(), " 00:00:00") }

// fromTo says when a range begins and ends.
func fromTo(from, to time.Time) string {
	begin, end := "the first result", "no end"
	if !from.IsZero() {
		begin = wall(from)
	}
	if !to.IsZero() {
		end = wall(to)
	}
	return begin + " to " + end
}

// clip cuts a text after n characters.
func clip(n int, s string) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// more says how many things of a list are not shown, "" if all are.
func more(all, shown int, what string) string {
	if all <= shown {
		return ""
	}
	return "and " + console.Plural(all-shown, "more "+what)
}
