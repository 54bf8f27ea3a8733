package pipelines

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/transform"
)

// Options is what a run is told besides its definition.
type Options struct {
	account.Options
	Progress func(Progress) // nil: nobody watches; called from several goroutines
	// Ended is called when a form has ended or will not begin, with its whole report.
	// nil: nobody is told; called from several goroutines.
	Ended  func(*FormReport)
	Stdout io.Writer // where the output "-" goes; nil discards
	Resume Resume    // what is taken over of a run that ended early
	// At is told when a run comes to a point: a step of a commit (load.Step) or
	// one of planned, piece, read, verified, snapshot, staged, prepared, codebook. Tests end
	// the process there. nil: nobody is told; called from several goroutines.
	At func(point string)
	// Wait waits for a time on the clock of the service. nil is a pause of that time; tests
	// whose service has a clock of its own set that. It is called from several goroutines.
	Wait func(ctx context.Context, d time.Duration) error

	forms    int              // how many forms are run, set by Run
	windows  reading.Slots    // of the windows of all forms, set by Run
	encoders reading.Slots    // of the objects that are encoded at once, set by Run
	batches  memory.Allocator // of the batches of all forms, set by Run
}

// pointPlanned is told to Options.At once the windows are known. The other points
// are those of packages reading, reconcile and output.
const pointPlanned = "planned"

// Progress is how far a form's run has come.
type Progress struct {
	Form     string
	Rows     int64 // results read so far
	Expected int64 // results counted, or extract.Unknown
	Requests int64
	// Windows is how many windows of time the plan has, 0 before it is made. WindowsDone
	// counts those that are read.
	Windows, WindowsDone int64
	Forms                int  // how many forms the run has
	Done                 bool // written
	Failed               bool // nothing more comes of it; the numbers are not given
}

// Run runs a definition, its forms side by side. A form that fails does not
// stop the others, unless each would fail of the same cause: then no further
// one is begun. The report tells what was done, also when the error is not nil,
// its forms in the order of the definition and of Get Forms; the error is a
// *account.FormsError where a form failed.
func Run(ctx context.Context, def *definition.Definition, o Options) (*Report, error) {
	o = o.withDefaults()
	o.windows, o.encoders = reading.NewSlots(def.Source.Requests.Concurrency), reading.NewSlots(runtime.GOMAXPROCS(0))
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	defer func() { report.EndedAt = o.Now().UTC() }()
	var err error
	if o.State, err = account.OpenState(ctx, def, o.Options); err != nil {
		return report, err
	}
	if _, err := checkpoint.Sweep(ctx, o.State, o.Job(def, "").Holder(), false); err != nil && ctx.Err() == nil {
		if isError[*checkpoint.UnreachedError](err) {
			return report, err
		}
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "checkpoints that nobody may take over could not be removed; a later run does it", slog.String("error", err.Error()))
	}
	client, err := account.NewClient(ctx, def, o.Options)
	if err != nil {
		return report, err
	}
	defer func() {
		client.Close() // it gives back what it had reserved
		if def.Source.Requests.PerDay <= 0 {
			return
		}
		brief, cancel := context.WithTimeout(ctx, load.Grace)
		defer cancel()
		if u, err := account.BudgetUse(brief, def, o.Options, o.Now()); err == nil {
			report.DayBudget = &DayBudget{Used: u.Day, Of: u.PerDay}
		}
	}()
	defer func() {
		sent := client.Requests()
		report.Requests, report.RequestOutcomes = RunRequests{requestsOf(sent), sent.Other}, client.Outcomes()
	}()
	forms, err := account.Forms(ctx, client, def, o.Options)
	if err != nil {
		return report, err
	}
	client.Reads(len(forms))
	o.forms = len(forms)
	runs := &formRuns{def: def, o: o, client: client, forms: forms, clash: collisions(def, forms, o.Tables.Formats, o.RunID, foldsCase())}
	runs.run(ctx)
	return report, runs.result(report)
}

func (o Options) withDefaults() Options {
	o.Options = o.WithDefaults()
	if o.At == nil {
		o.At = func(string) {}
	}
	if o.Wait == nil {
		o.Wait = load.Pause
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Ended == nil {
		o.Ended = func(*FormReport) {}
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	o.batches = &transform.Pool{}
	return o
}

func requestsOf(r transport.Requests) load.Requests {
	return load.Requests{Results: r.Results, Count: r.Count, Retries: r.Retries}
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
