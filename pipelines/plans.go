package pipelines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas/plain"
)

// PlanReport says what a run of a definition would do. Numbers that are not known before the
// run are nil.
type PlanReport struct {
	Pipeline   string      `json:"pipeline"`
	Definition string      `json:"definition,omitempty"`
	Offline    bool        `json:"offline"` // nothing was asked of the service
	Forms      []*FormPlan `json:"forms"`
	// Patterns are the definition's globs, if the forms that they match
	// are not known, because nothing was asked of the service.
	Patterns []string `json:"patterns,omitempty"`
	Budget   Budget   `json:"budget"` // of all forms together
}

// FormPlan is what a run would do with one form.
type FormPlan struct {
	Form     string          `json:"form"`
	Timezone string          `json:"timezone"`
	Range    load.Range      `json:"range"`
	Windows  []PlannedWindow `json:"windows"` // empty if they depend on counts and none was made
	Planned
	// Changes is nil for a run that continues no earlier one.
	Changes *PlannedChanges `json:"changes,omitempty"`
	// Unfinished is a run that ended early and that the planned run resumes from.
	Unfinished *Unfinished `json:"unfinished,omitempty"`
	// Warnings tell what a run would warn of, or end with, before it reads.
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Planned is what a run expects to read and to ask.
type Planned struct {
	// Results is how many results the service counts in the range. AtMost tells that a search
	// or a view leaves out some of these, because counts ignore both.
	Results *int64 `json:"results"`
	AtMost  bool   `json:"at_most"`
	// Undated are the results without a date, which lie in no range and which a run over
	// everything reads besides. It is nil if there are no such results, or if they are not read.
	Undated  *PlannedUndated `json:"undated,omitempty"`
	Requests PlannedRequests `json:"requests"`
	Budget   Budget          `json:"budget"`
}

// PlannedWindow is one window of a form's plan.
type PlannedWindow struct {
	load.Range
	Results  *int64 `json:"results"`  // nil where the window was not counted
	Requests *int64 `json:"requests"` // Get Results requests; nil where not known
}

// PlannedUndated is what a run expects of reading the results without a date.
type PlannedUndated struct {
	Results  int64 `json:"results"`
	Requests int64 `json:"requests"` // Get Results requests; PlannedRequests.Results includes them
}

// PlannedRequests are the requests that a run is expected to send.
type PlannedRequests struct {
	Results *int64 `json:"results"` // Get Results requests for windows
	// Feed is how many Get Results requests ask what changed, at most, while fewer than a
	// hundred results change.
	Feed    *int64 `json:"feed"`
	Counts  *int64 `json:"counts"`        // Get Results Count requests, for the plan and the check
	Total   *int64 `json:"total"`         // expected sum of all requests; may count one less for Feed
	Planned int    `json:"spent_on_plan"` // counts that making this plan has cost
	// Least is the number of windows, at a request each or more, where nothing was counted.
	// Most is how many requests the definition allows (max_requests).
	Least *int64 `json:"at_least,omitempty"`
	Most  int    `json:"max_requests,omitempty"`
}

// Budget compares a number of requests with the budgets per minute and per day that the
// definition allows.
type Budget struct {
	PerMinute int      `json:"per_minute"` // requests per minute; 0 means no budget
	Minutes   *float64 `json:"minutes"`    // least time of the requests; nil if not known
	PerDay    int      `json:"per_day"`    // requests per day; 0 means no budget
	DayShare  *float64 `json:"day_share"`  // share of the day's budget, 1 for all; nil if not known
}

// MakePlan tells what a run of the definition would do. It sends count
// requests only, and Get Forms where the definition has globs; offline it
// sends nothing and needs no API key. Nothing is written or locked. A form
// that fails does not stop the other forms: then the error is a *FormsError.
func MakePlan(ctx context.Context, def *definition.Definition, o Options, offline bool) (*PlanReport, error) {
	o = o.WithDefaults()
	report := &PlanReport{Pipeline: def.Name, Definition: def.File, Offline: offline, Forms: []*FormPlan{}}
	forms, client, err := report.forms(ctx, def, o)
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		return report, err
	}
	var failed FormsError
	total := new(int64)
	err = failed.Each(ctx, def, forms, func(def *definition.Definition, form string) error {
		p := &FormPlan{
			Form: form, Timezone: def.Source.Zone.String(), Windows: []PlannedWindow{},
			Planned: Planned{Budget: expend(def.Source.Requests, nil), Requests: PlannedRequests{Most: def.Source.Requests.MaxRequests}},
		}
		report.Forms = append(report.Forms, p)
		if def.Files != nil {
			p.Warnings = append(p.Warnings, "each uploaded file that is not stored yet takes one more request, which these figures leave out")
		}
		err := p.make(ctx, def, o, client)
		if err != nil {
			p.Error = err.Error()
		}
		total = sum(total, p.Requests.Total)
		return err
	})
	if err != nil {
		return report, err
	}
	if len(report.Patterns) > 0 {
		total = nil
	}
	report.Budget = expend(def.Source.Requests, total)
	return report, failed.OrNil()
}

// forms returns the forms that a run would read, and the client to ask about
// them, which is nil offline. The caller closes the client, also after an error.
func (r *PlanReport) forms(ctx context.Context, def *definition.Definition, o Options) (forms []string, client extract.Client, err error) {
	if !r.Offline {
		if client, err = NewClient(ctx, def, o); err != nil {
			return nil, nil, err
		}
	} else if forms, r.Patterns = NamedForms(def, o); len(r.Patterns) > 0 {
		return forms, nil, nil
	}
	forms, err = Forms(ctx, client, def, o)
	return forms, client, err
}

// make plans one form as a run of it would: with the same range and the same windows.
func (p *FormPlan) make(ctx context.Context, def *definition.Definition, o Options, client extract.Client) error {
	flags := o.Flags(def)
	i, err := reading.NewInterval(def, flags, o.Now())
	if err != nil {
		return err
	}
	outputs, err := output.Look(ctx, o.Job(def, p.Form))
	if err != nil {
		return err
	}
	o.Full, flags.Full = outputs.Full(), outputs.Full()
	for _, d := range outputs.Datasets() {
		if len(d.Damaged) > 0 && !o.Full {
			p.Warnings = append(p.Warnings, "missing or damaged: "+plain.Plural(len(d.Damaged), "part")+" of "+d.Path+"; the run reads what they held again, and the figures above count that only within the range")
		}
	}
	i = i.Decide(def, flags, outputs.Manifests(), time.Time{})
	form := reading.Form{Def: def, Name: p.Form, Client: client}
	p.Range, p.AtMost = load.Span(i.Read.From, i.Read.To), form.Filtered()
	if p.Unfinished, err = unfinishedOf(ctx, def, o, form); err != nil {
		return err
	}
	if wide := i.Widened(); wide != "" && !o.Full {
		p.Warnings = append(p.Warnings, wide)
	}
	f := p.follows(form, i, outputs, o.Now())
	if f.continues {
		err := p.makeTail(ctx, f)
		if !errors.Is(err, extract.ErrNoCount) {
			return err
		}
		f.continues = false // without counts the whole range is planned, below
	}
	plan, err := wouldPlan(ctx, form, i)
	if errors.Is(err, extract.ErrNoCount) {
		f.form.Countless, p.Changes = tellsNoCounts, nil
		plan, err = wouldPlan(ctx, f.form, i)
	}
	if plan == nil || err != nil {
		return err
	}
	p.fillFrom(plan)
	p.warn(f.form, plan)
	p.sum(f, plan, int64(plan.Requests+laterCounts(f.form, i)))
	return p.countUndated(ctx, f.form, i, plan)
}

// countUndated counts the results without a date, which a run over everything reads too, and
// adds them to what the run expects.
func (p *FormPlan) countUndated(ctx context.Context, form reading.Form, i reading.Interval, plan *extract.Plan) error {
	if form.Client == nil || i.Unbounded() || !i.Everything() || plan.Total == extract.Unknown {
		return nil
	}
	p.Requests.Planned++
	total, err := form.Client.Count(ctx, form.Name, extract.CountQuery{})
	if err != nil || total <= plan.Total {
		return err
	}
	p.Requests.Planned++
	undated, err := extract.CountUndated(ctx, form.Client, form.Name, total)
	if err != nil {
		return err
	}
	p.addUndated(form, total, undated)
	if day := int64(form.Def.Source.Requests.PerDay); day > 0 && p.Undated.Requests > day {
		p.Warnings = append(p.Warnings, fmt.Sprintf("per_day: %d is too small: the results without a date take about %s, and one run has to read them all; raise source.requests.per_day, or set extract.from, which leaves them out", day, plain.Plural(p.Undated.Requests, "request")))
	}
	return nil
}

// addUndated adds the results without a date to what a run expects: there are so many among
// the total of the form.
func (p *Planned) addUndated(form reading.Form, total, undated int64) {
	pages, counts := extract.UndatedRequests(form.Client.PageSize(), total, undated)
	counts += 2 // the run also counts the results with a date, before and after
	p.Undated = &PlannedUndated{Results: undated, Requests: pages}
	p.Requests.Results, p.Requests.Counts = sum(p.Requests.Results, &pages), sum(p.Requests.Counts, &counts)
	p.Requests.Total = sum(p.Requests.Total, known(pages+counts))
	p.Budget = expend(form.Def.Source.Requests, p.Requests.Total)
}

// sum fills in the requests that the run is expected to send, and the budget. counts is the
// number of count requests besides those for changes.
func (p *FormPlan) sum(f *following, plan *extract.Plan, counts int64) {
	// Goroutines that share the window may end their parts with pages that are not full.
	if plan.Range.Target == math.MaxInt && plan.Total > extract.DefaultTarget {
		p.Requests.Results = sum(p.Requests.Results, known(int64(1+f.form.Def.Source.Requests.Concurrency/2)))
		if len(p.Windows) == 1 {
			p.Windows[0].Requests = p.Requests.Results
		}
	}
	if f.form.Client != nil {
		feed, more := f.asked(plan)
		p.Requests.Feed, p.Requests.Counts = known(feed), known(counts+more)
		// No later run continues this one, so that it seldom needs all these requests.
		if feed > 2 && !f.form.Def.Extract.Incremental {
			feed--
		}
		p.Requests.Total = sum(sum(p.Requests.Results, known(feed)), p.Requests.Counts)
	}
	p.Budget = expend(f.form.Def.Source.Requests, p.Requests.Total)
}

// wouldPlan makes the plan that a run would make. The plan is nil where it depends on counts
// and there is no client to ask for these.
func wouldPlan(ctx context.Context, form reading.Form, i reading.Interval) (*extract.Plan, error) {
	r := form.Range(i, i.Read)
	if form.Client != nil {
		return form.Divide(ctx, r, form.Counter())
	}
	if r.Period.Auto() || r.Window.From.IsZero() {
		return nil, nil
	}
	return form.Divide(ctx, r, nil)
}

// warn adds to Warnings what the run would warn of, or end with, before it reads.
func (p *FormPlan) warn(form reading.Form, plan *extract.Plan) {
	if form.Countless != "" {
		p.Warnings = append(p.Warnings, form.Countless)
	}
	if costly := reading.CostlyText(plan); costly != "" {
		p.Warnings = append(p.Warnings, costly)
	}
	if err := form.TooCostly(plan); err != nil {
		p.Warnings = append(p.Warnings, "a run would not start: "+err.Error())
	}
}

// laterCounts returns how many counts a run sends after its plan if they agree with what it
// reads: one that verifies the range, and one over all results if the run has no bounds. If it
// does not verify, another one looks for results without a date.
func laterCounts(form reading.Form, i reading.Interval) int {
	verifies := form.Def.Extract.Verify && !form.Filtered()
	switch {
	case i.Everything() && !i.Unbounded():
		return 2
	case verifies:
		return 1
	}
	return 0
}

// fillFrom fills in what a plan tells: its windows, and how many results and requests it expects.
func (p *FormPlan) fillFrom(plan *extract.Plan) {
	for _, w := range plan.Windows {
		p.Windows = append(p.Windows, PlannedWindow{Range: load.Span(w.Window.From, w.Window.To), Results: known(w.Count), Requests: known(pagesOf(w.Count, plan.Range.PageSize))})
	}
	p.Results, p.Requests.Results = known(plan.Total), known(plan.Pages())
	p.Requests.Planned = plan.Requests
	if plan.Total == extract.Unknown {
		p.Requests.Least = known(plan.Cost())
	}
}

// pagesOf returns how many Get Results requests a window with so many results costs. size is
// how many results a full page holds.
func pagesOf(results int64, size int) int64 {
	switch results {
	case extract.Unknown, 0:
		return results
	}
	one := extract.Plan{Range: extract.Range{PageSize: size}, Total: results, Windows: []extract.Planned{{Count: results}}, Groups: []int64{results}}
	return one.Pages()
}

// known returns a pointer to a number, nil for extract.Unknown.
func known(n int64) *int64 {
	if n == extract.Unknown {
		return nil
	}
	return &n
}

// sum adds two numbers. It returns nil if one of them is nil, which means not known.
func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return known(*a + *b)
}

// expend returns the Budget for a number of requests. total is nil if the number is not known.
func expend(r definition.Requests, total *int64) Budget {
	of := func(budget int) *float64 {
		if total == nil || budget <= 0 {
			return nil
		}
		return new(math.Round(float64(*total)/float64(budget)*1e4) / 1e4) // more decimals would claim more than is known
	}
	return Budget{PerMinute: r.PerMinute, PerDay: r.PerDay, Minutes: of(r.PerMinute), DayShare: of(r.PerDay)}
}

// Unfinished is a run that ended early and whose checkpoint the planned run resumes from. So
// that run asks for fewer results than the plan says.
type Unfinished struct {
	RunID   string `json:"run_id"`
	Windows int    `json:"windows"` // number of windows that were read completely
	Results int64  `json:"results"` // number of results read, also in windows read in part
	// Requests is how many requests a run saves at least if it takes over all these results.
	// How many it takes over is known only when the run has its plan.
	Requests int64 `json:"requests"`
}

// unfinishedOf tells what an earlier run left in a checkpoint, nil if there is
// nothing. Whether the checkpoint fits the definition is decided only by the run.
func unfinishedOf(ctx context.Context, def *definition.Definition, o Options, form reading.Form) (u *Unfinished, err error) {
	all, err := Checkpoints(ctx, def, o, []string{form.Name})
	for _, c := range all {
		if c.Rows > 0 && c.Full == o.Full { // see checkpoint.Inherited.Unfit
			u = &Unfinished{RunID: c.RunID, Windows: c.Windows, Results: c.Rows, Requests: c.Rows / form.PageSize()}
		}
	}
	return u, err
}
