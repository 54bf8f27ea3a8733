// Package report writes the files that tell of runs: the report as JSON, or as a page of HTML
// that people open, print and send on, and the metrics for node_exporter's textfile collector.
// All are made of the reports that package pipelines returns; nothing is measured here.
//
// page.html is the template of the page and style.css its style. Their data are runs and forms:
// reports of package pipelines, with words for the page. html/template escapes every value by the
// place where it stands. The page loads and runs nothing: its content security policy refuses
// all else. The page holds no value of a result, unless an error quotes one.
//
// Metrics are a map of samples. Samples of an earlier file that tell when a form last succeeded
// are kept, so that an alert can watch their age.
//
// Begin reading at Write, page and page.html; for metrics at WriteMetrics.
package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas/plain"
)

//go:embed page.html style.css
var files embed.FS

// mostForms is how many forms the page shows. If there are more, it shows only those that failed.
const mostForms = 30

// run is a run in the shape that the page shows.
type run struct {
	*pipelines.Report
	console.Totals

	ID       string
	Forms    []form
	Verified string // how many forms agree with the service's counts
}

// page makes a page of HTML of the reports of runs. There may be no report or several.
func page(reports []*pipelines.Report) ([]byte, error) {
	forms := 0
	for _, r := range reports {
		forms += len(r.Forms)
	}
	most := max(8, 400/max(1, forms)) // entries of a list, fewer with many forms
	runs := make([]run, len(reports))
	for i, r := range reports {
		runs[i] = newRun(r, fmt.Sprintf("run%d", i+1), forms > mostForms)
	}
	t := template.New("").Funcs(words).Funcs(template.FuncMap{
		"most":      func() int { return most },
		"mostForms": func() int { return mostForms },
		"first": func(list any) any {
			v := reflect.ValueOf(list)
			return v.Slice(0, min(most, v.Len())).Interface()
		},
	})
	if _, err := t.ParseFS(files, "*"); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "page.html", runs); err != nil {
		return nil, err
	}
	return bytes.Map(allowed, b.Bytes()), nil
}

// allowed replaces characters that no page may hold, and marks that would change the direction of
// the text around them.
func allowed(r rune) rune {
	switch {
	case r == '\t', r == '\n':
		return r
	case r < ' ', r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return '\uFFFD'
	}
	return r // bytes that are not UTF-8 are U+FFFD here
}

func newRun(r *pipelines.Report, id string, onlyFailed bool) run {
	v := run{Report: r, Totals: console.TotalsOf(r.Forms...), ID: id, Verified: "no"}
	agree := 0
	for i, f := range r.Forms {
		shown := form{
			FormReport: f, ID: fmt.Sprintf("%s-form%d", id, i+1), Several: len(r.Forms) > 1, Shown: !onlyFailed || f.Error != "",
			Verified: "no", Watermark: console.TotalsOf(f).Watermark,
		}
		if word := console.VerifiedWord(f); strings.HasPrefix(word, "yes") {
			agree++
			shown.Verified = word
		}
		v.Forms = append(v.Forms, shown)
	}
	switch {
	case len(v.Forms) == 1:
		v.Verified = v.Forms[0].Verified
	case agree > 0:
		v.Verified = fmt.Sprintf("%d of %d", agree, len(v.Forms))
	}
	return v
}

// Begun tells whether the run began to read its forms.
func (r run) Begun() bool { return r.Error == "" || len(r.Forms) > 0 }

// Attempts lists how many attempts of requests had which outcome, the most frequent first.
func (r run) Attempts() string {
	of := r.RequestOutcomes
	names := slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(of))), func(a, b string) int { return int(of[b] - of[a]) })
	var list []string
	for _, name := range names {
		if of[name] > 0 {
			list = append(list, plain.Thousands(of[name])+" "+name)
		}
	}
	return strings.Join(list, ", ")
}

// badge says how a run or a form ended: by a CSS class, a mark and a word.
type badge struct{ Class, Mark, Word string }

func outcome(code int, begun bool) badge {
	word := console.Outcome(code, begun)
	switch {
	case code == console.ExitOK:
		return badge{"good", "✓", word}
	case code == console.ExitTemporary, code == console.ExitHungUp, code == console.ExitInterrupted, code == console.ExitTerminated, !begun:
		return badge{"warn", "!", word}
	}
	return badge{"bad", "✕", word}
}

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
