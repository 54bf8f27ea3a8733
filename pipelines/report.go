package pipelines

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/uploads"
	"github.com/formetl/formetl/schemas"
)

// Report says what a run did. It is written as JSON by --report.
type Report struct {
	Pipeline   string    `json:"pipeline"`
	Definition string    `json:"definition,omitempty"`
	RunID      string    `json:"run_id"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	// Version is the version of formetl that ran, and Host the machine's name. The command
	// fills them in.
	Version  string `json:"version"`
	Host     string `json:"host"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error,omitempty"`
	// API is the generation of the service that was asked; "" if none was.
	API string `json:"-"`
	// Hint says what to do next if the run failed. The command fills it in.
	Hint     string      `json:"hint,omitempty"`
	Requests RunRequests `json:"requests"`
	// RequestOutcomes counts the attempts of all requests by outcome
	// (transport.Sender.Outcomes).
	RequestOutcomes map[string]int64 `json:"request_outcomes,omitempty"`
	// DayBudget is nil if the definition has no budget per day, and if the budget could not be
	// read, as in a run that was stopped.
	DayBudget *DayBudget    `json:"day_budget,omitempty"`
	Forms     []*FormReport `json:"forms"`
}

// DayBudget says how many requests of the account's budget of 24 hours were used when a run
// ended, and of how many.
type DayBudget struct {
	Used int `json:"used"`
	Of   int `json:"of"`
}

// RunRequests counts the requests of a run.
type RunRequests struct {
	load.Requests
	Other int64 `json:"other"` // first attempts of other transactions, such as Get Forms
}

// All returns the number of attempts of all requests of a run.
func (r RunRequests) All() int64 { return r.Requests.All() + r.Other }

// FormReport says what a run did with one form.
type FormReport struct {
	Form      string     `json:"form"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   time.Time  `json:"ended_at"`
	Range     load.Range `json:"range"`
	Timezone  string     `json:"timezone"`

	// Continued is the id of a run that ended early and whose checkpoint this run
	// resumed from. WindowsKept counts the windows that the earlier run had read completely.
	Continued   string               `json:"continued,omitempty"`
	WindowsKept int                  `json:"windows_kept,omitempty"`
	Windows     int                  `json:"windows"`
	Rows        int64                `json:"rows"`
	Rejected    int64                `json:"rejected"`
	Rejects     []reading.FaultCount `json:"rejects,omitempty"` // rejected results by column and reason
	Nulled      []reading.FaultCount `json:"nulled,omitempty"`  // values that became null, by column and reason
	Replaced    int64                `json:"replaced_characters"`
	Planned     *Planned             `json:"planned,omitempty"` // what MakePlan tells; nil if the run made no plan
	Spans       []Span               `json:"spans,omitempty"`   // in order of time

	Verified *load.Verified `json:"verified,omitempty"`
	Reread   int            `json:"windows_read_again"`
	Older    int            `json:"older_windows"` // windows outside the range, in parts read again
	// ResultChanges says how the run found the results that had changed. It is
	// nil for a run that did not look for changed results.
	ResultChanges *ChangesReport `json:"result_changes,omitempty"`

	Requests load.Requests `json:"requests"`

	Files *uploads.Report `json:"files,omitempty"` // uploaded files; nil if they are not stored

	Undated int64    `json:"undated"` // rows without a date
	Drift   []string `json:"drift,omitempty"`
	// Changes are the changes of the form since the run before, in a shape for programs. Drift
	// has texts for people.
	Changes []schemas.Change `json:"changes,omitempty"`

	// ResultsKept is how many results the next run need not ask for again, if this run failed
	// after it had asked for results.
	ResultsKept *int64          `json:"results_kept,omitempty"`
	Outputs     []output.Report `json:"outputs"`
	ExitCode    int             `json:"exit_code"` // the class of Err, filled in by the command
	Error       string          `json:"error,omitempty"`
	Err         error           `json:"-"` // the error whose text is Error
}

// Span is a window of time of a run, or several adjacent windows where a run has many.
type Span struct {
	load.Range
	Windows  int    `json:"windows"`
	Planned  *int64 `json:"planned"` // results that the plan counted; nil if it did not count each window
	Results  int64  `json:"results"` // results that were read, including rejected ones
	Rejected int64  `json:"rejected"`
}

// mostSpans bounds the spans of a report, so that it stays small.
const mostSpans = 60

// expects returns the results and requests that a run may expect by its plan, as MakePlan does.
// It asks nothing of the service.
func (f *formRun) expects(d *decision, plan *extract.Plan) *Planned {
	r, p := f.reader, &FormPlan{Planned: Planned{AtMost: f.reader.Filtered()}}
	changed := p.follows(r.Form, d.Interval, f.outputs, f.o.Now())
	p.fillFrom(plan)
	counts := plan.Requests
	if d.changes == nil || !d.changes.Continues {
		counts += laterCounts(r.Form, d.Interval)
	}
	p.sum(changed, plan, int64(counts))
	return &p.Planned
}

// expectUndated adds the results without a date to what the run expected. It counted them only
// once it had read the others.
func (f *formRun) expectUndated() {
	p := f.report.Planned
	for _, w := range f.windows() {
		if w.Undated != nil && len(w.Counts) > 0 && p.Results != nil {
			p.addUndated(f.reader.Form, *p.Results+w.Counts[0], w.Counts[0])
		}
	}
}

// spansOf returns the windows of a run's range as spans for the report, at most mostSpans.
func spansOf(windows []*reading.Window) (spans []Span) {
	windows = reading.OfRange(windows)
	for some := range slices.Chunk(windows, max(1, (len(windows)+mostSpans-1)/mostSpans)) {
		s := Span{
			Range:   load.Span(some[0].Planned.Window.From, some[len(some)-1].Planned.Window.To),
			Windows: len(some), Planned: new(int64), Results: reading.Results(some),
		}
		for _, w := range some {
			s.Planned, s.Rejected = sum(s.Planned, known(w.Planned.Count)), s.Rejected+w.Stats.Rejected
		}
		spans = append(spans, s)
	}
	return spans
}

// ChangesReport says how a run found the results that had changed since the last
// run, and what it did about them.
type ChangesReport struct {
	Method  string        `json:"method"`           // load.MethodChanges or load.MethodLookback
	Reason  string        `json:"reason,omitempty"` // why the service could not be asked for changes
	KnownTo load.WallTime `json:"known_to"`         // changes are known up to then, by the service's clock; null: not known
	Changed int           `json:"changed"`          // number of results that changed since the last run
	// StaleParts counts the parts that were read again because results of them changed.
	StaleParts int `json:"stale_parts"`
}
