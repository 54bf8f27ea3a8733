package reportpage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// totals are sums over the forms of a run.
type totals struct {
	rows, rejected    int64
	verified, between int // forms
	watermark         load.WallTime
}

func totalOf(r *pipelines.Report) (t totals) {
	for _, f := range r.Forms {
		t.rows, t.rejected = t.rows+f.Rows, t.rejected+f.Rejected
		switch v := f.Verified; {
		case v == nil:
		case v.Match:
			t.verified++
		case v.Reason == "":
			t.between++
		}
		if w := leastWatermark(f); !w.IsZero() && (t.watermark.IsZero() || w.Before(t.watermark.Time)) {
			t.watermark = w
		}
	}
	return t
}

// leastWatermark is up to when all outputs of a form are complete, zero if none tells.
func leastWatermark(f *pipelines.FormReport) (least load.WallTime) {
	for _, out := range f.Outputs {
		if w := out.Watermark; !w.IsZero() && (least.IsZero() || w.Before(least.Time)) {
			least = w
		}
	}
	return least
}

// verifiedWord says in a few words how many forms agree with the service's counts.
func (t totals) verifiedWord(forms int) string {
	agree := t.verified + t.between
	switch {
	case forms == 1 && t.verified == 1:
		return "yes"
	case forms == 1 && t.between == 1:
		return "between counts"
	case agree == 0:
		return "no"
	}
	return fmt.Sprintf("%d of %d", agree, forms)
}

// run shows a run: a summary first, then each of its forms.
func (m *markup) run(r *pipelines.Report, id string, room room) {
	m.open("section", "class", "run", "id", id)
	m.open("header", "class", "top")
	m.element("p", "formetl run report", "class", "kicker")
	m.open("h1")
	m.text(clip(r.Pipeline, mostName))
	m.b.WriteByte(' ')
	m.badge(r.ExitCode, true)
	m.end("h1")
	m.element("p", instant(r.StartedAt)+" · run "+r.RunID, "class", "when")
	m.end("header")
	m.failure(r.Error, r.Hint)
	if len(r.Forms) > 0 {
		m.tiles(r)
	}
	if len(r.Forms) > 1 {
		m.formList(r.Forms, id, room)
	}
	m.facts(r)
	for i, f := range r.Forms {
		if room.shows(f) {
			m.form(f, fmt.Sprintf("%s-form%d", id, i+1), len(r.Forms) > 1, room)
		}
	}
	m.end("section")
}

// badge says in a word how a run or a form ended.
func (m *markup) badge(code int, begun bool) {
	word := telemetry.Outcome(code, begun)
	class, mark := "bad", "✕ "
	switch {
	case code == exit.OK:
		class, mark = "good", "✓ "
	case code == exit.Temporary, code == exit.HungUp, code == exit.Interrupted, code == exit.Terminated, !begun:
		class, mark = "warn", "! "
	}
	m.element("span", mark+word, "class", "badge "+class)
}

// failure shows an error and what to do about it.
func (m *markup) failure(problem, hint string) {
	if problem == "" {
		return
	}
	m.open("div", "class", "failure")
	m.element("p", clip(problem, mostError))
	if hint != "" {
		m.element("p", "What to do: "+clip(hint, mostError), "class", "hint")
	}
	m.end("div")
}

// tiles are the figures of a run.
func (m *markup) tiles(r *pipelines.Report) {
	t := totalOf(r)
	m.open("dl", "class", "tiles")
	tile := func(name, value, class string) {
		m.open("div", "class", class)
		m.element("dt", name)
		m.element("dd", value)
		m.end("div")
	}
	tile("Rows", show.Thousands(t.rows), "")
	tile("Rejected", show.Thousands(t.rejected), either(t.rejected > 0, "warn", ""))
	word := t.verifiedWord(len(r.Forms))
	tile("Verified", word, either(word == "no" && r.ExitCode != exit.OK, "bad", ""))
	tile("Requests", show.Thousands(r.Requests.All()-r.Requests.Retries), "")
	tile("Retries", show.Thousands(r.Requests.Retries), either(r.Requests.Retries > 0, "warn", ""))
	tile("Duration", took(r.EndedAt.Sub(r.StartedAt)), "")
	m.end("dl")
}

// facts are what else is known of a run as a whole.
func (m *markup) facts(r *pipelines.Report) {
	m.open("dl", "class", "facts")
	m.fact("Exit code", fmt.Sprintf("%d – %s", r.ExitCode, telemetry.Outcome(r.ExitCode, true)))
	m.fact("Ended", instant(r.EndedAt))
	if len(r.Forms) == 1 {
		m.fact("Range", rangeText(r.Forms[0]))
	}
	if w := totalOf(r).watermark; !w.IsZero() {
		m.fact("Watermark", either(len(r.Forms) > 1, "at least ", "")+w.String())
	}
	m.fact("Attempts", outcomes(r.RequestOutcomes))
	m.fact("Definition", r.Definition)
	m.fact("Program", strings.TrimSpace("formetl "+r.Version))
	m.fact("Host", r.Host)
	m.end("dl")
}

func (m *markup) fact(name, value string) {
	if value == "" {
		return
	}
	m.open("div")
	m.element("dt", name)
	m.element("dd", clip(value, mostError))
	m.end("div")
}

// rangeText is what a form's run was about.
func rangeText(f *pipelines.FormReport) string {
	if f.Range == (load.Range{}) {
		return ""
	}
	return either(f.Range.From.IsZero(), "the first result", wall(f.Range.From.Time)) + " to " +
		either(f.Range.To.IsZero(), "no end", wall(f.Range.To.Time)) + " (exclusive), " + f.Timezone
}

// outcomes lists what became of attempts, the most frequent first.
func outcomes(of map[string]int64) string {
	names := slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(of))), func(a, b string) int { return int(of[b] - of[a]) })
	var list []string
	for _, name := range names {
		if of[name] > 0 {
			list = append(list, show.Thousands(of[name])+" "+name)
		}
	}
	return strings.Join(list, ", ")
}

// formList lists the forms of a run that has several.
func (m *markup) formList(forms []*pipelines.FormReport, run string, room room) {
	m.table("", "Form", "Outcome", "#Rows", "#Rejected", "Verified", "#Requests", "#Retries", "#Duration")
	for i, f := range forms {
		m.open("tr")
		m.open("td")
		if room.shows(f) {
			m.element("a", clip(f.Form, mostName), "href", fmt.Sprintf("#%s-form%d", run, i+1))
		} else {
			m.text(clip(f.Form, mostName))
		}
		m.end("td")
		m.open("td")
		m.badge(f.ExitCode, telemetry.Begun(f))
		m.end("td")
		m.numbers(show.Thousands(f.Rows), some(f.Rejected))
		m.cells(verifiedShort(f))
		m.numbers(show.Thousands(f.Requests.Results+f.Requests.Count), some(f.Requests.Retries), took(f.EndedAt.Sub(f.StartedAt)))
		m.end("tr")
	}
	m.endTable()
	if room.failed {
		m.element("p", fmt.Sprintf("Of more than %d forms only those that failed are shown below.", mostForms), "class", "note")
	}
}

func verifiedShort(f *pipelines.FormReport) string {
	one := totalOf(&pipelines.Report{Forms: []*pipelines.FormReport{f}})
	return one.verifiedWord(1)
}

// since is a moment of a run, after its start.
func since(d time.Duration) string { return "+" + took(d) }
