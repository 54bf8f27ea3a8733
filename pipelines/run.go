package pipelines

import (
	"context"
	"errors"
	"log/slog"
	"runtime"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// pointPlanned is the point at which Options.At is called once the windows are planned. The
// other points are constants of packages reading, reconcile and output.
const pointPlanned = "planned"

// Progress is how far a form's run has come.
type Progress struct {
	Form                string
	Rows                int64 // results read so far
	Expected            int64 // results counted, or extract.Unknown
	Requests, PerMinute int64 // requests sent so far, and the most that may be sent in a minute, 0 for no budget
	Files, FilesPlanned int64 // uploaded files asked for so far, and those to ask for, at least
	// Windows is how many windows of time the plan has, 0 before it is made. WindowsDone
	// is how many of these are read.
	Windows, WindowsDone int64
	Forms                int  // how many forms the run has
	Done                 bool // an output of the form was committed
	Failed               bool // the form failed; then the numbers are not set
}

// Run runs a definition, its forms side by side. A form that fails does not
// stop the others, unless every form would fail for the same cause: then no further
// form is begun. The report tells what was done, also when the error is not nil. It has the
// forms that Get Forms lists first, in that order. The error is a *FormsError where a form
// failed.
func Run(ctx context.Context, def *definition.Definition, o Options) (*Report, error) {
	o = o.WithDefaults()
	o.windows, o.encoders = reading.NewSlots(def.Source.Requests.Concurrency), reading.NewSlots(runtime.GOMAXPROCS(0))
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	defer func() { report.EndedAt = o.Now().UTC() }()
	var err error
	if o.State, err = OpenState(ctx, def, o); err != nil {
		return report, err
	}
	if _, err := checkpoint.Sweep(ctx, o.State, o.Job(def, "").Holder(), false); err != nil && ctx.Err() == nil {
		if isError[*checkpoint.UnreachedError](err) {
			return report, err
		}
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "old checkpoints that are not needed any more could not be removed; later runs try again, once what the error says is mended", slog.String("error", err.Error()))
	}
	client, err := NewClient(ctx, def, o)
	if err != nil {
		return report, err
	}
	report.API = client.Generation()
	defer func() {
		client.Close() // it gives back the requests that it had reserved
		if def.Source.Requests.PerDay <= 0 {
			return
		}
		brief, cancel := context.WithTimeout(ctx, load.Grace)
		defer cancel()
		if u, err := BudgetUse(brief, def, o, o.Now()); err == nil {
			report.DayBudget = &DayBudget{Used: u.Day, Of: u.PerDay}
		}
	}()
	defer func() {
		sent := client.Requests()
		report.Requests, report.RequestOutcomes = RunRequests{requestsOf(sent), sent.Other}, client.Outcomes()
	}()
	forms, err := Forms(ctx, client, def, o)
	if err != nil {
		return report, err
	}
	client.Reads(len(forms))
	o.forms = len(forms)
	runs := &formRuns{def: def, o: o, client: client, forms: forms, clash: collisions(def, forms, o.BuiltIn.Formats, o.RunID, foldsCase())}
	runs.run(ctx)
	return report, runs.result(report)
}

func requestsOf(r transport.Requests) load.Requests {
	return load.Requests{Results: r.Results, Count: r.Count, Files: r.Files, Retries: r.Retries}
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
