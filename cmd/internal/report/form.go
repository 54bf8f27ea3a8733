package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// form is what a run did with a form, in the shape that the page shows.
type form struct {
	*pipelines.FormReport

	ID        string
	Several   bool          // the run has other forms
	Shown     bool          // the page has a section of the form
	Verified  string        // whether results agree with the service's counts, in a word or two
	Watermark load.WallTime // up to when all outputs are complete; zero if no output tells
}

// Begun tells whether the run began to read the form.
func (f form) Begun() bool { return console.Begun(f.FormReport) }

// Range returns the range of time that the run read of the form, "" if that is not known.
func (f form) Range() string {
	r := f.FormReport.Range
	if r == (load.Range{}) {
		return ""
	}
	return console.Range(r) + ", " + f.Timezone
}

// Notes returns sentences on what is notable about the form.
func (f form) Notes() []string {
	var list []string
	add := func(is bool, text string) {
		if is {
			list = append(list, strings.ToUpper(text[:1])+text[1:]+".")
		}
	}
	add(f.Several && f.Range() != "", "range: "+f.Range())
	add(f.Several && !f.Watermark.IsZero(), "watermark: "+f.Watermark.String())
	add(f.Error == "" && f.Rows+f.Rejected == 0, "nothing new: the service has no results to read in this range")
	add(f.Error == "" || f.FormReport.Verified != nil, console.Verified(f.FormReport))
	add(f.Continued != "", fmt.Sprintf("resumed from run %s, which had read %s of this run to the end", f.Continued, plain.Plural(f.WindowsKept, "window")))
	resumable := console.Resumable("the next run", &pipelines.Report{Forms: []*pipelines.FormReport{f.FormReport}})
	add(resumable != "", resumable)
	for _, text := range console.Changed(f.ResultChanges) {
		add(true, text)
	}
	add(f.Reread > 0, plain.Plural(f.Reread, "window")+" read again because results changed or moved")
	add(f.Older > 0, plain.Plural(f.Older, "window")+" of older parts read again, not shown in the time line")
	add(console.UndatedApart(f.FormReport), plain.Plural(f.Undated, "result")+" without a date")
	add(f.Replaced > 0, plain.Plural(f.Replaced, "invalid character")+" replaced by �")
	return list
}

// against compares what was done with what the plan expected.
type against struct {
	Name    string
	Planned *int64 // what the plan expected; nil if that is not known
	Done    int64
}

// Plan compares what the run did with the form with the run's plan.
func (f form) Plan() []against {
	if f.Planned == nil {
		return nil
	}
	results, name := f.Rows+f.Rejected-f.Undated, "Results"
	if f.Error != "" { // what was read of a failed form is in no output
		results = 0
		for _, s := range f.Spans {
			results += s.Results
		}
	}
	p := f.Planned.Requests
	var pages *int64 // requests for pages, including those that ask what changed
	if p.Total != nil && p.Counts != nil {
		pages = new(*p.Total - *p.Counts)
	}
	var list []against
	if u := f.Planned.Undated; u != nil {
		name, list = "Results with a date", []against{{"Results without a date", &u.Results, f.Undated}}
	}
	return slices.Concat([]against{{name, f.Planned.Results, results}}, list, []against{
		{"Requests for results and changes", pages, f.Requests.Results},
		{"Requests for counts", p.Counts, f.Requests.Count},
		{"Both kinds of requests", p.Total, f.Requests.Results + f.Requests.Count},
	})
}

// PlanNotes says why what was done may differ from the plan, and what the plan itself cost.
func (f form) PlanNotes() string {
	var notes []string
	p := f.Planned
	if p.AtMost {
		notes = append(notes, "The planned results are the most that can come: the service counts all results, not only those of the search or view.")
	}
	if f.Continued != "" {
		notes = append(notes, "The plan is that of the whole range. The run did not ask again for what run "+f.Continued+" had read.")
	}
	if f.Older > 0 {
		notes = append(notes, "The plan has only what is new. Only the run finds out which older parts hold changed results.")
	}
	if f.Requests.Retries > 0 {
		notes = append(notes, "Retries, which this table does not count: "+plain.Thousands(f.Requests.Retries)+".")
	}
	if b := p.Budget; b.Minutes != nil && *b.Minutes > 1 {
		notes = append(notes, fmt.Sprintf("At most %s a minute are allowed, so the planned requests take about %s.", plain.Plural(b.PerMinute, "request"), time.Duration(*b.Minutes*float64(time.Minute)).Round(time.Second)))
	}
	if b := p.Budget; b.DayShare != nil {
		notes = append(notes, fmt.Sprintf("The planned requests are %.1f %% of the %s that are allowed in 24 hours.", 100**b.DayShare, plain.Plural(b.PerDay, "request")))
	}
	return strings.Join(notes, " ")
}

// span is a span of the time line, with the lengths of its bars in percent of the longest bar.
type span struct {
	pipelines.Span
	Undated                bool    // it is not a span but the results without a date
	Read, Refused, Missing float64 // Missing is what was planned and not read
}

// TimeLine shows how many results each span of the form's range has, and how many have no date.
func (f form) TimeLine() []span {
	missing := func(s pipelines.Span) int64 {
		if s.Planned == nil {
			return 0
		}
		return max(0, *s.Planned-s.Results)
	}
	spans, longest := f.Spans, int64(1)
	undated := f.Planned != nil && f.Planned.Undated != nil
	if undated {
		spans = append(slices.Clone(spans), pipelines.Span{Windows: 1, Planned: &f.Planned.Undated.Results, Results: f.Undated})
	}
	for _, s := range spans {
		longest = max(longest, s.Results+missing(s))
	}
	percent := func(n int64) float64 { return 100 * float64(n) / float64(longest) }
	list := make([]span, len(spans))
	for i, s := range spans {
		list[i] = span{s, undated && i == len(f.Spans), percent(s.Results - s.Rejected), percent(s.Rejected), percent(missing(s))}
	}
	return list
}

// Breaking returns how many changes of the form's columns break programs that read the outputs.
func (f form) Breaking() int { return schemas.Breaking(f.Changes) }
