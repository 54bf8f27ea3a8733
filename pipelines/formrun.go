package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// formRun is the run of one form: plan, read, reconcile, stage, commit.
type formRun struct {
	def    *definition.Definition
	o      Options
	client extract.Client // of this run alone: it counts what the run costs
	reader *extract.Reader
	form   string
	log    *slog.Logger
	report *FormReport
	full   bool // everything is replaced

	iv      interval.Interval
	targets []*target
	kept    []schemas.Column // of the manifests that earlier runs left

	checkpoint *checkpoint.Checkpoint
	left       *checkpoint.Inherited // what an earlier run read; nil where there is nothing of use
	counts     counts
	// dateless tells that no request has dates, since the service ignores them.
	dateless bool
	plan     *extract.Plan

	schema   *schemas.Schema // what flatteners begin with
	headings []page.Heading  // labels known when the schema was settled

	// What follows is written by one goroutine while no window is read. While
	// windows are read, mu guards it, and with it the readings of windows.
	mu       sync.Mutex
	windows  []*windowRun            // in order of time, undated results last
	reads    int                     // windows read so far, to tell which of two was read first
	rows     int64                   // results read so far, for the progress
	expected int64                   // results counted, or extract.Unknown
	rejects  int64                   // of the windows read
	added    map[schemas.Source]bool // columns that windows have added to the schema
	labels   map[string]string       // headings by id, as the service gives them now

	ownCounted int64 // what the service counts in own, where rng is wider

	older        []*olderRange     // read again because a result of them moved
	compared     *roaring64.Bitmap // ids that were looked for in older parts
	undatedMoved bool              // a result that was undated has a date now
	final        transform.Stats   // sums over all windows, once nothing is read any more
}

func newFormRun(def *definition.Definition, o Options, client extract.Client, form string) *formRun {
	f := &formRun{
		def: def, o: o, client: client.Fork(), form: form, expected: extract.Unknown,
		full: o.Full, compared: roaring64.New(),
		log:    o.Logger.With(slog.String("form", form)),
		report: &FormReport{Form: form, StartedAt: o.Now().UTC(), Timezone: def.Source.Zone.String(), Outputs: []OutputReport{}},
	}
	f.reader = f.newReader()
	return f
}

func (f *formRun) newReader() *extract.Reader {
	e := f.def.Extract
	return extract.NewReader(f.client, f.form, extract.ResultsQuery{Search: e.Search, View: e.View, CustomLabels: e.CustomLabels})
}

// filtered tells whether the results are fewer than counts count: the count
// knows neither searches nor views (specification, section 4.6).
func (f *formRun) filtered() bool {
	return len(f.def.Extract.Search.Where) > 0 || f.def.Extract.View != ""
}

// at tells whoever watches that the run has come to a point.
func (f *formRun) at(point string) {
	if f.o.At != nil {
		f.o.At(point)
	}
}

// run does the whole run. Whatever happens, leases are given back, and what was
// read and not committed is kept for the next run or removed.
func (f *formRun) run(ctx context.Context) (err error) {
	defer func() { f.endReport(err) }()
	if f.iv, err = interval.Ask(f.def, f.o.flags(), f.o.Now()); err != nil {
		return err
	}
	defer func() {
		err = f.closed(ctx, err, f.closeTargets(ctx))
	}()
	defer func() { err = errors.Join(err, f.closeCheckpoint(ctx, err)) }()
	steps := []func(context.Context) error{
		f.openTargets, f.makePlan, f.keepPlan, f.settleSchema, f.takeOver, f.beginCheckpoint, f.readAll, f.readUndated, f.settle, f.commit,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			f.endFaults(ctx, err)
			return stopped(ctx, f.needsDates(err))
		}
	}
	return nil
}

// stopped is the error of a run that ended early. Where the run was told to
// stop it gives the reason and not the place that the run happened to be at,
// unless there is more to tell.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if byStop := errors.Is(err, cause) || errors.Is(err, ctx.Err()); byStop && !mustStay(err) {
		return cause
	}
	return fmt.Errorf("%w; %w", cause, err)
}

// endReport fills in what the report says also of a run that failed.
func (f *formRun) endReport(err error) {
	f.report.EndedAt = f.o.Now().UTC()
	f.report.Requests = f.requests()
	f.report.Windows = len(f.windows)
	f.report.read = f.ownReadings()
	for _, t := range f.targets {
		if t.committed || t.err != nil {
			f.report.Outputs = append(f.report.Outputs, t.report)
		}
	}
	if err != nil {
		f.report.Error, f.report.Err = err.Error(), err
	}
}

// ownReadings are the spans of time that this process read itself, or knows to
// be empty, rather than taking over what another one had read.
func (f *formRun) ownReadings() []extract.Window {
	var read []extract.Window
	for _, w := range f.windows {
		if w.undated == nil && w.done && !w.taken {
			read = append(read, w.planned.Window)
		}
	}
	return gathered(read, 0)
}

// closed is the error of a run whose outputs were closed. What went wrong there
// is told in the log where the run had failed anyway.
func (f *formRun) closed(ctx context.Context, err, closing error) error {
	if err == nil {
		return closing
	}
	if closing != nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "not everything could be tidied up; the next run or `formetl clean` does it", slog.String("error", closing.Error()))
	}
	return err
}

// makePlan divides the range into windows.
func (f *formRun) makePlan(ctx context.Context) error {
	plan, err := f.newPlan(ctx, f.iv.Read, f.remembered(f.counter()))
	if err != nil {
		return err
	}
	f.plan = plan
	if !f.filtered() {
		f.expected = plan.Total
		f.reader.Trust(f.verifies())
	}
	f.windows = f.divide(plan)
	f.log.LogAttrs(ctx, slog.LevelInfo, "planned",
		slog.String("range", f.iv.Read.String()), slog.Int("windows", len(plan.Windows)),
		slog.Int64("results", plan.Total), slog.Int("count_requests", plan.Requests))
	f.at(pointPlanned)
	return nil
}

// divide makes the windows of a plan.
func (f *formRun) divide(plan *extract.Plan) []*windowRun {
	windows := make([]*windowRun, 0, len(plan.Windows))
	groups := make([]windowGroup, len(plan.Groups))
	for _, p := range plan.Windows {
		w := &windowRun{planned: p, done: p.Count == 0}
		if p.Count != extract.Unknown {
			w.counted(p.Count)
		}
		windows = append(windows, w)
		groups[p.Group].windows = append(groups[p.Group].windows, w)
	}
	for i, w := range windows {
		g := plan.Windows[i].Group
		w.group = windowGroup{windows: groups[g].windows, count: plan.Groups[g]}
	}
	return windows
}

// planRange is how a span of time is to be divided.
func (f *formRun) planRange(span extract.Window) extract.Range {
	if f.dateless {
		return wholeRange(span, !f.def.Extract.Verify)
	}
	r := extract.Range{
		Window: span, Step: f.def.Extract.Window, Partition: f.def.FinestUnit(), Most: int64(f.def.Source.Requests.MaxRequests),
	}
	if f.iv.Asked != f.iv.Read {
		r.Cuts = append(r.Cuts, f.iv.Asked.From, f.iv.Asked.To)
	}
	r.Cuts = append(r.Cuts, f.iv.Next)
	// Without verification fixed windows of a bounded range need no count.
	r.Uncounted = !f.def.Extract.Verify && !r.Step.Auto() && !r.Window.From.IsZero()
	return r
}

func (f *formRun) counter() extract.Counter {
	return func(ctx context.Context, w extract.Window) (int64, error) {
		if f.dateless {
			w = extract.Window{}
		}
		return f.client.Count(ctx, f.form, extract.CountQuery{Window: w})
	}
}

// readAll reads every window that may hold results, side by side.
func (f *formRun) readAll(ctx context.Context) error {
	todo := slices.DeleteFunc(slices.Clone(f.windows), func(w *windowRun) bool { return w.done })
	if err := f.readEach(ctx, todo); err != nil {
		return err
	}
	if how := f.reader.Downgraded(); how != "" {
		f.drift(how)
		f.log.LogAttrs(ctx, slog.LevelWarn, how)
	}
	return nil
}

// readEach reads windows side by side.
func (f *formRun) readEach(ctx context.Context, todo []*windowRun) error {
	return f.eachWindow(ctx, todo, func(ctx context.Context, w *windowRun) error {
		if err := f.leasesHeld(ctx); err != nil {
			return err
		}
		err := f.readWindow(ctx, w)
		if !isError[*extract.OrderError](err) {
			return err
		}
		if err := f.forget(ctx, w); err != nil {
			return err
		}
		return f.readWindow(ctx, w) // the reader pages otherwise from here on
	})
}

// eachWindow does something with windows side by side, with no more of them at
// once over all forms of the run than requests may be under way.
func (f *formRun) eachWindow(ctx context.Context, windows []*windowRun, do func(ctx context.Context, w *windowRun) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(f.o.places))
	for _, w := range windows {
		group.Go(func() error {
			return f.o.places.hold(ctx, func() error { return do(ctx, w) })
		})
	}
	return group.Wait()
}

// requests are those that this form has cost so far.
func (f *formRun) requests() load.Requests { return requestsOf(f.client.Requests()) }

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
func (f *formRun) progress(rows int64, done bool) {
	f.mu.Lock()
	f.rows += rows
	p := Progress{Form: f.form, Rows: f.rows, Expected: f.expected, Done: done}
	f.mu.Unlock()
	r := f.requests()
	p.Requests = r.Results + r.Count + r.Retries
	f.o.Progress(p)
}
