package pipelines

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// formRun is the run of one form: plan, read, check, commit.
type formRun struct {
	def    *Definition
	o      Options
	client *extract.Client
	reader *extract.Reader
	form   string
	log    *slog.Logger
	report *FormReport
	before extract.Requests // that the client had sent when this form began

	own     extract.Window // the range that was asked for
	rng     extract.Window // own, widened to the whole parts of datasets
	outputs []output
	spool   *spool
	plan    *extract.Plan

	schema   *schemas.Schema   // what flatteners begin with
	headings []extract.Heading // labels known when the schema was settled

	mu      sync.Mutex
	windows []*windowRun // in order of time, undated results last
	reads   int          // windows read so far, to tell which of two was read first
	rows    int64
	indices int               // windows made so far
	rejects int64             // of the windows read
	labels  map[string]string // headings by id, as the service gives them now
}

// output is one place that a form's results go to.
type output interface {
	// windowRead is told each time that a window was read, and takes what it
	// can take early. It is called from several goroutines.
	windowRead(ctx context.Context, w *windowRun) error
	// commit makes the results visible once all windows are there.
	commit(ctx context.Context) (OutputReport, error)
	// close drops what was not committed and gives the lease back.
	close(ctx context.Context) error
}

func newFormRun(def *Definition, o Options, client *extract.Client, form string) *formRun {
	e := def.Extract
	return &formRun{
		def: def, o: o, client: client, form: form, before: client.Requests(),
		reader: client.NewReader(form, extract.ResultsQuery{Search: e.Search, View: e.View, CustomLabels: e.CustomLabels}),
		log:    o.Logger.With(slog.String("form", form)),
		report: &FormReport{Form: form, Timezone: def.Source.Zone.String(), Outputs: []OutputReport{}},
	}
}

// filtered tells whether the results are fewer than counts count: the count
// knows neither searches nor views (specification, section 4.6).
func (f *formRun) filtered() bool {
	return len(f.def.Extract.Search.Where) > 0 || f.def.Extract.View != ""
}

func (f *formRun) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			f.report.Error = err.Error()
		}
	}()
	if f.own, err = rangeOf(f.def, f.o); err != nil {
		return err
	}
	if f.spool, err = openSpool(f.def.State, f.o.RunID); err != nil {
		return err
	}
	// What a stop leaves to do is done in any case.
	defer func() { err = errors.Join(err, f.spool.close()) }()
	defer func() { err = errors.Join(err, f.closeOutputs(context.WithoutCancel(ctx))) }()
	steps := []func(context.Context) error{
		f.openOutputs, f.makePlan, f.settleSchema, f.readAll, f.readUndated, f.settleDuplicates, f.verify, f.commit,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *formRun) closeOutputs(ctx context.Context) error {
	failures := make([]error, 0, len(f.outputs))
	for _, out := range f.outputs {
		failures = append(failures, out.close(ctx))
	}
	return errors.Join(failures...)
}

// openOutputs opens every destination, takes its lease and widens the range
// to whole parts.
func (f *formRun) openOutputs(ctx context.Context) error {
	f.rng = f.own
	for _, def := range f.def.Outputs {
		var out output
		var err error
		switch {
		case def.Path == StdoutPath:
			out, err = f.openStream(def)
		case def.Dataset():
			out, err = f.openDataset(ctx, def)
		default:
			out, err = f.openFile(ctx, def)
		}
		if err != nil {
			return err
		}
		f.outputs = append(f.outputs, out)
	}
	for widened := true; widened; {
		widened = false
		for _, out := range f.outputs {
			if d, ok := out.(*datasetOutput); ok {
				w := d.widen(f.rng)
				widened = widened || w != f.rng
				f.rng = w
			}
		}
	}
	f.report.Range = load.Range{From: load.Wall(f.rng.From), To: load.Wall(f.rng.To)}
	return nil
}

// makePlan divides the range into windows.
func (f *formRun) makePlan(ctx context.Context) error {
	plan, err := extract.NewPlan(ctx, f.planRange(), f.counter())
	if err != nil {
		return err
	}
	f.plan = plan
	for _, p := range plan.Windows {
		f.windows = append(f.windows, &windowRun{planned: p, index: f.nextIndex()})
	}
	for _, out := range f.outputs {
		if d, ok := out.(*datasetOutput); ok {
			d.divide(f.windows)
		}
	}
	f.report.Windows = len(f.windows)
	f.log.LogAttrs(ctx, slog.LevelInfo, "planned",
		slog.String("range", f.rng.String()), slog.Int("windows", len(plan.Windows)),
		slog.Int64("results", plan.Total), slog.Int("count_requests", plan.Requests))
	return nil
}

// nextIndex numbers windows, for their names in the spool.
func (f *formRun) nextIndex() int {
	f.indices++
	return f.indices
}

func (f *formRun) planRange() extract.Range {
	r := extract.Range{Window: f.rng, Step: f.def.Extract.Window}
	for _, out := range f.def.Outputs {
		r.Partition = finest(r.Partition, out.Partition.unit())
	}
	if f.own != f.rng {
		r.Cuts = append(r.Cuts, f.own.From, f.own.To)
	}
	// Without verification fixed windows of a bounded range need no count.
	r.Uncounted = !f.def.Extract.Verify && !r.Step.Auto() && !r.Window.From.IsZero()
	return r
}

// finest is the smaller unit: its boundaries are those of the larger one too.
func finest(a, b extract.Unit) extract.Unit {
	if a == extract.UnitNone || b != extract.UnitNone && b < a {
		return b
	}
	return a
}

func (p Partition) unit() extract.Unit {
	switch p {
	case PartitionDay:
		return extract.UnitDay
	case PartitionMonth:
		return extract.UnitMonth
	case PartitionYear:
		return extract.UnitYear
	}
	return extract.UnitNone
}

func (f *formRun) counter() extract.Counter {
	return func(ctx context.Context, w extract.Window) (int64, error) {
		return f.client.Count(ctx, f.form, extract.CountQuery{Window: w})
	}
}

// readAll reads every window that may hold results, side by side.
func (f *formRun) readAll(ctx context.Context) error {
	var todo []*windowRun
	for _, w := range f.windows {
		switch {
		case w.planned.Count == 0:
			w.done = true
		case !w.done:
			todo = append(todo, w)
		}
	}
	if err := f.readEach(ctx, todo); err != nil {
		return err
	}
	if how := f.reader.Downgraded(); how != "" {
		f.drift(how)
		f.log.LogAttrs(ctx, slog.LevelWarn, how)
	}
	return nil
}

// readEach reads windows side by side, no more at once than requests may be
// under way.
func (f *formRun) readEach(ctx context.Context, todo []*windowRun) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.def.Source.Requests.Concurrency)
	for _, w := range todo {
		group.Go(func() error {
			if err := f.readWindow(ctx, w); err != nil {
				return err
			}
			if err := f.checkRejects(ctx); err != nil {
				return err
			}
			for _, out := range f.outputs {
				if err := out.windowRead(ctx, w); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return nil
}

// requests are those that this form has cost so far.
func (f *formRun) requests() load.Requests {
	now := f.client.Requests()
	return load.Requests{
		Results: now.Results - f.before.Results, Count: now.Count - f.before.Count, Retries: now.Retries - f.before.Retries,
	}
}

// drift notes a change of the form or the service for the report.
func (f *formRun) drift(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.report.Drift {
		if d == what {
			return
		}
	}
	f.report.Drift = append(f.report.Drift, what)
}

// progress tells the watcher how far the run is.
func (f *formRun) progress(rows int, done bool) {
	f.mu.Lock()
	f.rows += int64(rows)
	p := Progress{Form: f.form, Rows: f.rows, Expected: extract.Unknown, Done: done}
	f.mu.Unlock()
	if f.plan != nil && !f.filtered() {
		p.Expected = f.plan.Total
	}
	r := f.requests()
	p.Requests = r.Results + r.Count + r.Retries
	f.o.Progress(p)
}

// commit commits every output; one that fails does not stop the others.
func (f *formRun) commit(ctx context.Context) error {
	f.summarise()
	failed := &OutputsError{}
	for i, out := range f.outputs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report, err := out.commit(ctx)
		report.Format = f.def.Outputs[i].Format
		if err != nil {
			report.Error = err.Error()
			failed.Errors = append(failed.Errors, err)
		}
		f.report.Outputs = append(f.report.Outputs, report)
	}
	f.progress(0, true)
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}
