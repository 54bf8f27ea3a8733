package reportpage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/detail"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// form shows what a run did with a form. Of several forms each has its own heading facts.
func (m *markup) form(f *pipelines.FormReport, id string, several bool, room room) {
	m.open("section", "class", "form", "id", id)
	m.open("h2")
	m.text("Form " + clip(f.Form, mostName))
	if several {
		m.b.WriteByte(' ')
		m.badge(f.ExitCode, telemetry.Begun(f))
	}
	m.end("h2")
	if several {
		m.failure(f.Error, "")
	}
	m.statements(f, several)
	if d := f.Detail; d != nil {
		m.planAndFact(f, d)
		m.timeline(f, d.Form, room)
		m.days(d.Form, room)
	}
	m.drift(f, room)
	m.faults(f, room)
	if d := f.Detail; d != nil {
		m.columns(f, d.Columns, room)
	}
	m.outputs(f.Outputs)
	if d := f.Detail; d != nil {
		m.windows(d.Spans, room)
	}
	m.end("section")
}

// statements say in sentences what is notable about a form.
func (m *markup) statements(f *pipelines.FormReport, several bool) {
	var list []string
	add := func(is bool, text string) {
		if is {
			list = append(list, text)
		}
	}
	add(several && rangeText(f) != "", "Range: "+rangeText(f)+".")
	add(several && !leastWatermark(f).IsZero(), "Watermark: "+leastWatermark(f).String()+".")
	add(f.Error == "" && f.Rows+f.Rejected == 0, "Nothing was new: the service has no results to read here.")
	add(f.Error == "" || f.Verified != nil, capital(telemetry.Verified(f))+".")
	add(f.Continued != "", fmt.Sprintf("It resumed from run %s; %s had been read whole.", f.Continued, show.Plural(f.Kept, "window")))
	if kept := telemetry.Kept("for the next run", &pipelines.Report{Forms: []*pipelines.FormReport{f}}); kept != "" {
		add(true, capital(kept)+".")
	}
	for _, text := range telemetry.Changed(f.ResultChanges) {
		add(true, capital(text)+".")
	}
	add(f.Reread > 0, "Read again because results changed or moved: "+show.Plural(f.Reread, "window")+" of time.")
	add(f.Older > 0, "Read again of older parts: "+show.Plural(f.Older, "window")+" of time.")
	add(f.Undated > 0, show.Plural(f.Undated, "result")+" without a date.")
	add(f.Replaced > 0, show.Plural(f.Replaced, "forbidden character")+" replaced.")
	if len(list) == 0 {
		return
	}
	m.open("ul", "class", "notes")
	for _, text := range list {
		m.element("li", clip(text, mostError))
	}
	m.end("ul")
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// planAndFact sets what was done against what the plan expected.
func (m *markup) planAndFact(f *pipelines.FormReport, d *pipelines.Detail) {
	p := d.Plan
	if p == nil {
		return
	}
	m.element("h3", "Plan against fact")
	m.table("narrow", "", "#Planned", "#Done", "#Difference")
	row := func(name string, planned *int64, done int64) {
		m.open("tr")
		m.element("th", name, "scope", "row")
		m.numbers(count(planned), show.Thousands(done), difference(planned, done))
		m.end("tr")
	}
	windows, read, results := int64(d.Windows), int64(0), int64(0)
	for _, s := range d.Spans {
		if s.Kind != detail.Undated {
			read, results = read+int64(s.Windows-s.Unread), results+s.Results
		}
	}
	row("Windows of time", &windows, read)
	row("Results", p.Results, results)
	row("Requests for results", less(p.Requests.Total, p.Requests.Counts), f.Requests.Results) // those that ask what changed too
	row("Requests for counts", p.Requests.Counts, f.Requests.Count)
	row("Requests in all", p.Requests.Total, f.Requests.Results+f.Requests.Count)
	m.endTable()
	m.planNotes(f, p)
}

func (m *markup) planNotes(f *pipelines.FormReport, p *pipelines.FormPlan) {
	var notes []string
	if p.AtMost {
		notes = append(notes, "The plan counts results that the search or view leaves out.")
	}
	if f.Undated > 0 {
		notes = append(notes, "The plan does not know of the results without a date.")
	}
	if f.Requests.Retries > 0 {
		notes = append(notes, "Besides, "+show.Plural(f.Requests.Retries, "attempt")+" were made after a first one had failed.")
	}
	if b := p.Budget; b.Minutes != nil {
		notes = append(notes, fmt.Sprintf("With %s a minute the plan takes %.1f minutes at least.", show.Plural(b.PerMinute, "request"), *b.Minutes))
	}
	if b := p.Budget; b.DayShare != nil {
		notes = append(notes, fmt.Sprintf("It is %.1f %% of a day's budget.", 100**b.DayShare))
	}
	if len(notes) > 0 {
		m.element("p", strings.Join(notes, " "), "class", "note")
	}
}

// less is the difference of two numbers, nil if one is not known.
func less(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	rest := *a - *b
	return &rest
}

// difference is by how much the fact differs from the plan.
func difference(planned *int64, done int64) string {
	if planned == nil {
		return ""
	}
	d := done - *planned
	if d == 0 {
		return "as planned"
	}
	text := either(d > 0, "+", "−") + show.Thousands(max(d, -d))
	if *planned > 0 {
		text += " (" + percent(max(d, -d), *planned) + ")"
	}
	return text
}

// openChanges is how many changes of a form are shown without a click.
const openChanges = 12

// drift lists how the form or the service changed.
func (m *markup) drift(f *pipelines.FormReport, room room) {
	told := slices.DeleteFunc(slices.Clone(f.Drift), func(d string) bool { // a change tells it too
		return slices.ContainsFunc(f.Changes, func(c schemas.Change) bool { return strings.HasPrefix(d, c.From+" ") })
	})
	if len(told)+len(f.Changes) == 0 {
		return
	}
	m.element("h3", "Drift")
	if len(told) > 0 {
		m.open("ul", "class", "notes")
		for _, d := range told[:min(len(told), room.changes)] {
			m.element("li", clip(d, mostDrift))
		}
		m.end("ul")
	}
	if n := len(f.Changes); n > 0 {
		m.open("details", "open", either(n <= openChanges, "open", ""))
		m.element("summary", show.Plural(n, "change")+" of the form, "+show.Thousands(schemas.Breaking(f.Changes))+" of them breaking")
		m.table("", "Change", "Column", "From", "Was", "Is", "#Values", "Breaks readers")
		for _, c := range f.Changes[:min(len(f.Changes), room.changes)] {
			is := c.Is
			if c.Label != "" {
				is = strings.TrimSpace(is + " “" + c.Label + "”")
			}
			m.open("tr")
			m.cells(strings.TrimSpace(string(c.Kind)+" "+c.Key), clip(c.Column, mostName), clip(c.From, mostName), clip(c.Was, mostName), clip(is, mostName))
			m.numbers(some(c.Count))
			m.cells(either(c.Breaking, "yes", "no"))
			m.end("tr")
		}
		m.endTable()
		m.end("details")
	}
	m.more(len(told)-room.changes, "note")
	m.more(len(f.Changes)-room.changes, "change")
}

// more says how much was left out of a list.
func (m *markup) more(n int, what string) {
	if n > 0 {
		m.element("p", "and "+show.Plural(n, "more "+what)+"; the report as JSON has all.", "class", "note")
	}
}

// faults lists values that did not fit their columns, without the values.
func (m *markup) faults(f *pipelines.FormReport, room room) {
	if len(f.Rejects)+len(f.Nulled) == 0 {
		return
	}
	m.element("h3", "Values that did not fit")
	m.table("", "Column", "Reason", "What became of it", "#Times")
	rows := func(list []reading.FaultCount, became string) {
		for _, c := range list[:min(len(list), room.changes)] {
			m.open("tr")
			m.cells(clip(c.Column, mostName), c.Reason, became)
			m.numbers(show.Thousands(c.Count))
			m.end("tr")
		}
	}
	rows(f.Rejects, "its result was rejected")
	rows(f.Nulled, "it became null")
	m.endTable()
	m.more(max(0, len(f.Rejects)-room.changes)+max(0, len(f.Nulled)-room.changes), "reason")
	if f.DeadLetters != "" {
		m.element("p", "The first rejected results are in "+f.DeadLetters+".", "class", "note")
	}
}

// outputs lists what the outputs hold now.
func (m *markup) outputs(outputs []output.Report) {
	if len(outputs) == 0 {
		return
	}
	m.element("h3", "Outputs")
	m.table("", "Output", "Format", "#Rows", "#Objects", "#Size", "Watermark", "Outcome")
	for _, out := range outputs {
		m.open("tr")
		m.open("td", "class", "path")
		m.text(clip(out.Path, mostError))
		if out.Explode != "" {
			m.element("small", "a row for each element of "+out.Explode)
		}
		if out.SHA256 != "" {
			m.element("small", "sha256 "+out.SHA256)
		}
		m.end("td")
		m.cells(out.Format)
		m.numbers(show.Thousands(out.Rows), show.Thousands(out.Parts), show.Size(out.Bytes))
		m.cells(either(out.Watermark.IsZero(), "", out.Watermark.String()))
		m.open("td")
		m.text(either(out.Error == "", "written", "failed"))
		for _, text := range []string{out.Error, out.CompanionsError} {
			if text != "" {
				m.element("small", clip(text, mostError))
			}
		}
		m.end("td", "tr")
	}
	m.endTable()
}

// mostPrinted is how many windows are worth the paper.
const mostPrinted = 60

// windows lists the windows of a form, or several of them in a row where they are many.
func (m *markup) windows(spans []detail.Span, room room) {
	if len(spans) == 0 {
		return
	}
	spans = merged(spans, room.windows)
	m.open("details", "class", either(len(spans) > mostPrinted, "screen", ""))
	m.element("summary", "All windows of time")
	m.table("", "From", "To", "#Expected", "#Results", "#Rejected", "#Requests", "#Retries", "#Asked at", "#Took", "")
	for _, s := range spans {
		m.open("tr")
		if s.Kind == detail.Dated {
			m.cells(either(s.From.IsZero(), "the first result", wall(s.From)), either(s.To.IsZero(), "no end", wall(s.To)))
		} else {
			m.element("td", string(s.Kind), "colspan", "2")
		}
		asked, lasted := "", ""
		if s.Asked.Requests+s.Asked.Retries > 0 {
			asked, lasted = since(s.Asked.Began), took(s.Asked.Ended-s.Asked.Began)
		}
		m.numbers(either(s.Expected == extract.Unknown, "–", show.Thousands(s.Expected)), show.Thousands(s.Results), some(s.Rejected),
			some(s.Asked.Requests), some(s.Asked.Retries), asked, lasted)
		m.cells(remark(s))
		m.end("tr")
	}
	m.endTable()
	m.end("details")
}

// remark says what is notable about a span.
func remark(s detail.Span) string {
	var list []string
	add := func(n int, what string) {
		switch {
		case n == 0:
		case s.Windows == 1:
			list = append(list, what)
		default:
			list = append(list, fmt.Sprintf("%d of %d %s", n, s.Windows, what))
		}
	}
	add(s.Empty, "known to be empty")
	add(s.Taken, "taken over")
	add(s.Again, "read again")
	add(s.Unread, "not read")
	if len(list) == 0 && s.Windows > 1 {
		return show.Plural(s.Windows, "window")
	}
	return strings.Join(list, ", ")
}
