package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// formRun is the run of one form: plan, read, check, commit.
type formRun struct {
	def     *Definition
	o       Options
	client  extract.Client // of this run alone: it counts what the run costs
	reader  *extract.Reader
	form    string
	log     *slog.Logger
	report  *FormReport
	runID   string          // under which it commits: the run's own, or that of the run it goes on with
	full    bool            // everything is replaced
	frozen  *frozen         // what the run had decided that this one goes on with; nil where it begins anew
	ahead   bool            // an output was committed by the run that this one goes on with
	covered *extract.Window // what the runs before it committed that this one follows on; nil where it stands alone
	given   *extract.Window // the range, where this run follows on another; nil for the definition's
	hold    time.Time       // what this run follows on was complete up to there; zero where it follows on none

	asked   extract.Window // the range as it was asked for: without an end where the clock gives it
	own     extract.Window // the same with its end
	rng     extract.Window // own, widened to the whole parts of datasets
	settled time.Time      // wall clock up to which results were complete when the run began
	cut     time.Time      // where the next incremental run begins; zero where that is not known
	targets []*target
	kept    []schemas.Column // of the manifests that earlier runs left
	spool   *spool
	left    *leftSpool  // that of a run that ended early; nil where there is none to go on with
	spooled *frozen     // what that run had decided, where no journal says it
	noted   atomic.Bool // a window is recorded in the spool
	// dateless tells that no request has dates, since the service ignores them.
	dateless bool
	plan     *extract.Plan

	schema   *schemas.Schema // what flatteners begin with
	headings []page.Heading  // labels known when the schema was settled

	// What follows is written by one goroutine while no window is read. While
	// windows are read, mu guards it, and with it what a windowRun says of its
	// last reading.
	mu       sync.Mutex
	windows  []*windowRun            // in order of time, undated results last
	reads    int                     // windows read so far, to tell which of two was read first
	rows     int64                   // results read so far, for the progress
	expected int64                   // results counted, or extract.Unknown
	indices  int                     // windows made so far
	rejects  int64                   // of the windows read
	seen     seenDictionary          // of what windows say that their rows hold
	added    map[schemas.Source]bool // columns that windows have added to the schema
	labels   map[string]string       // headings by id, as the service gives them now

	ownCounted int64 // what the service counts in own, where rng is wider

	older        []*olderRange     // read again because a result of them moved
	compared     *roaring64.Bitmap // ids that were looked for in older parts
	undatedMoved bool              // a result that was undated has a date now
}

func newFormRun(def *Definition, o Options, client extract.Client, form string) *formRun {
	f := &formRun{
		def: def, o: o, client: client.Fork(), form: form, expected: extract.Unknown,
		runID: o.RunID, full: o.Full, compared: roaring64.New(),
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
// spooled or staged and not committed is removed or kept for the next run.
func (f *formRun) run(ctx context.Context) (err error) {
	defer func() { f.endReport(err) }()
	if err = f.settleRange(); err != nil {
		return err
	}
	f.settled = wallNow(f.o.Now(), f.def.Source.Zone).Add(-f.def.Extract.Settle)
	if !f.hold.IsZero() {
		f.settled = earlier(f.settled, f.hold)
	}
	if err = f.findLeft(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.closeSpool(ctx, err)) }()
	defer func() {
		err = f.closed(ctx, err, f.closeTargets(ctx, f.keeps(err) && f.resumable()))
	}()
	steps := []func(context.Context) error{
		f.openTargets, f.makePlan, f.keepPlan, f.settleSchema, f.beginSpool, f.takeOver, f.readAll, f.readUndated, f.settle, f.commit,
	}
	for i, step := range steps {
		if err := step(ctx); err != nil {
			return stopped(ctx, f.needsDates(err))
		}
		if i == 0 && len(f.live()) == 0 {
			f.writeCodebooks(ctx)
			return f.outcome(ctx) // all else was committed by the run that is gone on with
		}
	}
	return nil
}

// settleRange finds the range as it is asked for, before any watermark.
func (f *formRun) settleRange() (err error) {
	if f.given != nil {
		f.own, f.asked = *f.given, *f.given
		return nil
	}
	f.own, err = rangeOf(f.def, f.o)
	f.asked = askedOf(f.def, f.o)
	return err
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
	f.endFaults(err)
}

// ownReadings are the spans of time that this process read itself, or knows to
// be empty, rather than taking over what another one had read.
func (f *formRun) ownReadings() []extract.Window {
	var read []extract.Window
	for _, w := range f.windows {
		if !w.undated && w.done && (w.readAt == 0 || w.attempt == f.o.RunID) {
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

// keeps tells whether what was done so far is of use to the next run. Where an
// output failed that others did not wait for it is not: they would get no more
// than that as long as it fails.
func (f *formRun) keeps(err error) bool {
	if err == nil || !keepsPrepared(err) {
		return false
	}
	committed := slices.ContainsFunc(f.targets, func(t *target) bool { return t.committed })
	return !isError[*OutputsError](err) || !committed
}

// resumable tells whether the next run can go on with what is prepared.
func (f *formRun) resumable() bool {
	return f.frozen != nil || !f.def.hasFiles()
}

// makePlan divides the range into windows, or takes the plan of the run that
// is gone on with.
func (f *formRun) makePlan(ctx context.Context) (err error) {
	var plan *extract.Plan
	switch {
	case f.frozen != nil:
		plan, err = f.frozen.plan()
	case f.spooled != nil:
		plan, err = f.planOnwards(ctx, f.spooled)
	default:
		plan, err = f.newPlan(ctx, f.rng)
	}
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
		slog.String("range", f.rng.String()), slog.Int("windows", len(plan.Windows)),
		slog.Int64("results", plan.Total), slog.Int("count_requests", plan.Requests))
	f.at(pointPlanned)
	return nil
}

// divide makes the windows of a plan and assigns them to the parts of datasets.
func (f *formRun) divide(plan *extract.Plan) []*windowRun {
	windows := make([]*windowRun, 0, len(plan.Windows))
	groups := make([]windowGroup, len(plan.Groups))
	for _, p := range plan.Windows {
		w := f.newWindow(windowRun{planned: p, done: p.Count == 0})
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
	for _, d := range f.datasets() {
		d.divide(windows)
	}
	return windows
}

// newWindow numbers a window, for its names in the spool.
func (f *formRun) newWindow(w windowRun) *windowRun {
	f.indices++
	w.index = f.indices
	return &w
}

// planRange is how a span of time is to be divided.
func (f *formRun) planRange(span extract.Window) extract.Range {
	if f.dateless {
		return wholeRange(span, !f.def.Extract.Verify)
	}
	r := extract.Range{
		Window: span, Step: f.def.Extract.Window, Partition: f.def.partition(), Most: int64(f.def.Source.Requests.MaxRequests),
	}
	if f.own != f.rng {
		r.Cuts = append(r.Cuts, f.own.From, f.own.To)
	}
	r.Cuts = append(r.Cuts, f.cut)
	// Without verification fixed windows of a bounded range need no count.
	r.Uncounted = !f.def.Extract.Verify && !r.Step.Auto() && !r.Window.From.IsZero()
	return r
}

// partition is the finest unit that an output is divided by.
func (d *Definition) partition() extract.Unit {
	unit := extract.UnitNone
	for _, out := range d.Outputs {
		unit = finest(unit, out.Partition.unit())
	}
	return unit
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
		if f.dateless {
			w = extract.Window{}
		}
		return f.client.Count(ctx, f.form, extract.CountQuery{Window: w})
	}
}

// readAll reads every window that may hold results, side by side.
func (f *formRun) readAll(ctx context.Context) error {
	var todo, taken []*windowRun
	for _, w := range f.windows {
		switch {
		case !w.done:
			todo = append(todo, w)
		case w.readAt > 0:
			taken = append(taken, w)
		}
	}
	// Of windows that were taken over parts are made of what lies in the spool.
	if err := f.eachWindow(ctx, taken, f.tellTargets); err != nil {
		return err
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

// readEach reads windows side by side and tells the outputs of them.
func (f *formRun) readEach(ctx context.Context, todo []*windowRun) error {
	return f.eachWindow(ctx, todo, func(ctx context.Context, w *windowRun) error {
		err := f.readWindow(ctx, w)
		if disorder := (*extract.OrderError)(nil); errors.As(err, &disorder) {
			err = f.readWindow(ctx, w) // the reader pages otherwise from here on
		}
		if err != nil {
			return err
		}
		if err := f.checkRejects(); err != nil {
			return err
		}
		return f.tellTargets(ctx, w)
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
