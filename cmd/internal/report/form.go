package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
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
	return fromTo(r.From.Time, r.To.Time) + " (exclusive), " + f.Timezone
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
	add(f.Error == "" && f.Rows+f.Rejected == 0, "nothing was new: the service has no results to read here")
	add(f.Error == "" || f.FormReport.Verified != nil, console.Verified(f.FormReport))
	add(f.Continued != "", fmt.Sprintf("it resumed from run %s; %s had been read whole", f.Continued, console.Plural(f.WindowsKept, "window")))
	resumable := console.Resumable("for the next run", &pipelines.Report{Forms: []*pipelines.FormReport{f.FormReport}})
	add(resumable != "", resumable)
	for _, text := range console.Changed(f.ResultChanges) {
		add(true, text)
	}
	add(f.Reread > 0, "read again because results changed or moved: "+console.Plural(f.Reread, "window")+" of time")
	add(f.Older > 0, "read again of older parts: "+console.Plural(f.Older, "window")+" of time")
	add(f.Undated > 0, console.Plural(f.Undated, "result")+" without a date")
	add(f.Replaced > 0, console.Plural(f.Replaced, "forbidden character")+" replaced")
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
	results := f.Rows + f.Rejected - f.Undated
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
	return []against{
		{"Results", f.Planned.Results, results},
		{"Requests for results", pages, f.Requests.Results},
		{"Requests for counts", p.Counts, f.Requests.Count},
		{"Requests in all", p.Total, f.Requests.Results + f.Requests.Count},
	}
}

// PlanNotes says why what was done may differ from the plan, and what the plan itself cost.
func (f form) PlanNotes() string {
	var notes []string
	p := f.Planned
	if p.AtMost {
		notes = append(notes, "The plan counts results that the search or view leaves out.")
	}
	if f.Undated > 0 {
		notes = append(notes, "The plan does not know of the results without a date.")
	}
	if f.Requests.Retries > 0 {
		notes = append(notes, "Besides, the run made "+console.Plural(f.Requests.Retries, "attempt")+" after a first one had failed.")
	}
	if b := p.Budget; b.Minutes != nil {
		notes = append(notes, fmt.Sprintf("With %s a minute the plan takes %.1f minutes at least.", console.Plural(b.PerMinute, "request"), *b.Minutes))
	}
	if b := p.Budget; b.DayShare != nil {
		notes = append(notes, fmt.Sprintf("It is %.1f %% of a day's budget.", 100**b.DayShare))
	}
	return strings.Join(notes, " ")
}

// span is a span of the time line, with the lengths of its bars in percent of the longest bar.
type span struct {
	pipelines.Span
	Read, Refused, Missing float64 // Missing is what was planned and not read
}

// TimeLine shows how many results each span of the form's range has.
func (f form) TimeLine() []span {
	missing := func(s pipelines.Span) int64 {
		if s.Planned == nil {
			return 0
		}
		return max(0, *s.Planned-s.Results)
	}
	longest := int64(1)
	for _, s := range f.Spans {
		longest = max(longest, s.Results+missing(s))
	}
	percent := func(n int64) float64 { return 100 * float64(n) / float64(longest) }
	list := make([]span, len(f.Spans))
	for i, s := range f.Spans {
		list[i] = span{s, percent(s.Results - s.Rejected), percent(s.Rejected), percent(missing(s))}
	}
	return list
}

// Told returns the drift of the form, without drift that the form's changes tell too.
func (f form) Told() []string {
	return slices.DeleteFunc(slices.Clone(f.Drift), func(d string) bool {
		return slices.ContainsFunc(f.Changes, func(c schemas.Change) bool { return strings.HasPrefix(d, c.From+" ") })
	})
}

// Breaking returns how many changes of the form's columns break programs that read the outputs.
func (f form) Breaking() int { return schemas.Breaking(f.Changes) }
