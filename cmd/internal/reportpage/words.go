package reportpage

import (
	"fmt"
	"html/template"
	"reflect"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
)

// words are the functions by which page.html says numbers and times.
var words = template.FuncMap{
	"n":          thousands,
	"some":       some,
	"fromTo":     func(r load.Range) string { return fromTo(r.From.Time, r.To.Time) },
	"plural":     func(n any, noun string) string { return show.Plural(reflect.ValueOf(n).Int(), noun) },
	"known":      show.Known,
	"difference": difference,
	"size":       show.Size,
	"took":       took,
	"minus":      func(a, b int64) int64 { return a - b },
	"instant":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"clip":       clip,
	"more":       more,
	"outcome":    outcome,
}

// thousands is a number of any type of whole numbers.
func thousands(n any) string { return show.Thousands(reflect.ValueOf(n).Int()) }

// some is a number, and nothing for 0, which would hide the others of a table.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return show.Thousands(n)
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
	text := sign + show.Thousands(d)
	if *planned > 0 {
		text += " (" + percent(d, *planned) + ")"
	}
	return text
}

// percent is a share of a whole. Only all is 100 %, and only nothing is 0 %.
func percent(n, of int64) string {
	p := 100 * float64(n) / float64(max(1, of))
	switch {
	case p <= 0:
		return "0 %"
	case p < 0.1:
		return "< 0.1 %"
	case n >= of:
		return "100 %"
	case p > 99.9:
		return "> 99.9 %"
	case p < 10 || p > 90:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// took is a length of time for people.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
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
	return "and " + show.Plural(all-shown, "more "+what)
}
