package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// runForm runs one form. If the service has no list of changes or tells no counts, the run
// begins again without them; if results are dated later than now, with a range that ends later.
func runForm(ctx context.Context, def *definition.Definition, o Options, client extract.Client, form string) (*FormReport, error) {
	f, err := lastRun(ctx, def, o, client, form)
	return f.report, err
}

// lastRun does the same as runForm. It returns the run that began last.
func lastRun(ctx context.Context, def *definition.Definition, o Options, client extract.Client, form string) (*formRun, error) {
	f := newFormRun(def, o, client.Fork(), form)
	for {
		err := f.run(ctx)
		late, isLate := errors.AsType[*reconcile.LateError](err)
		noFeed, _ := errors.AsType[*extract.FeedError](err)
		why := f.countless(err)
		switch {
		case isLate && f.beyond.IsZero():
			f = f.again(ctx, "the range is read up to the newest results", err)
			f.beyond = late.Beyond
		case noFeed != nil && f.noFeed == nil:
			f = f.again(ctx, "the lookback is read again, because the service does not tell what changed", err)
			f.noFeed = noFeed
		case f.reader.Countless == "" && why != "":
			f.reader.Countless = why
			f = f.again(ctx, "the run begins again without counts, so that nothing is compared with them", err)
			f.drift(why)
		default:
			return f, err
		}
	}
}

// again gives the same run once more. Its requests are counted together with those
// of the first.
func (f *formRun) again(ctx context.Context, what string, why error) *formRun {
	f.reader.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("reason", why.Error()))
	again := newFormRun(f.reader.Def, f.o, f.reader.Client, f.reader.Name)
	again.report.StartedAt, again.reader.Began = f.report.StartedAt, f.report.StartedAt
	again.noFeed, again.reader.Countless, again.beyond = f.noFeed, f.reader.Countless, f.beyond
	again.reader.Pages.DoubtEnds(f.reader.Countless != "")
	return again
}

// API v2 has no request for a count. Counts are taken from its headers, and nothing
// promises what these hold (service-v2.md, section 9).
const (
	tellsNoCounts    = "the service tells no counts"
	tellsWrongCounts = "the service tells no counts: its headers never agreed with the results that came"
)

// countless returns why a run that failed can do without counts: the service has told
// none that agreed with what it sent. It is "" if it cannot.
func (f *formRun) countless(err error) string {
	wrong, ok := errors.AsType[*reconcile.VerifyError](err)
	switch {
	case ok && wrong.Untold && f.reader.CountMethod() == load.MethodPagination:
		return tellsWrongCounts
	case errors.Is(err, extract.ErrNoCount) && !f.reader.CountsAgreed():
		return tellsNoCounts
	}
	return ""
}

// formRun is the run of one form: what the steps have given so far.
type formRun struct {
	o          Options
	reader     *reading.Reader
	iv         interval.Interval
	outputs    *output.Set
	noFeed     *extract.FeedError    // why the feed of changes is not asked, nil where it is
	beyond     time.Time             // see interval.Flags
	left       *checkpoint.Inherited // what an earlier run read; nil where there is nothing
	counts     reading.Counts
	reconciler *reconcile.Reconciler
	snapshot   *reconcile.Snapshot
	tally      tally

	mu     sync.Mutex // guards the drift of the report
	report *FormReport
}

func newFormRun(def *definition.Definition, o Options, client extract.Client, form string) *formRun {
	f := &formRun{
		o: o, report: &FormReport{Form: form, StartedAt: o.Now().UTC(), Timezone: def.Source.Zone.String()},
	}
	f.reader = &reading.Reader{
		Form: reading.Form{
			Def: def, Name: form, Client: client, Pages: extract.NewReader(client, form, reading.Query(def.Extract)), RunID: o.RunID, Began: f.report.StartedAt,
			Now: o.Now, Wait: o.Wait, Log: o.Logger.With(slog.String("form", form)), At: o.At, Slots: o.windows,
		},
		Keeps:  keepsRead,
		Before: func(ctx context.Context) error { return f.outputs.LeasesHeld(ctx) },
		Watch:  func(read, expected int64) { f.progress(read, expected, false) },
		Done:   f.tally.note,
	}
	f.reader.Pages.Notice = func(what string) {
		f.drift(what)
		f.reader.Log.LogAttrs(context.Background(), slog.LevelWarn, what)
	}
	f.reconciler = reconcile.New(f.reader, o.Full)
	f.outputs = output.New(&output.Job{
		Def: def, Form: form, RunID: o.RunID, Full: o.Full, Tables: o.Tables, Stdout: o.Stdout, Now: o.Now, Log: f.reader.Log, At: o.At,
		Encoders: o.encoders, Requests: f.requests, Drift: f.drift,
	})
	return f
}

// run does the whole run: Open, Decide, Plan, Read, Reconcile, Stage and Commit.
// Whatever happens, leases are given back, and what was read and not committed is
// kept for the next run or removed.
func (f *formRun) run(ctx context.Context) (err error) {
	defer func() { f.endReport(err) }()
	flags := f.o.Flags()
	flags.Beyond = f.beyond
	if f.iv, err = interval.Ask(f.reader.Def, flags, f.o.Now()); err != nil {
		return err
	}
	defer func() { err = f.closed(ctx, err, f.outputs.Close(ctx)) }()
	defer func() { f.closeCheckpoint(ctx, err) }()
	for _, step := range []func(context.Context) error{f.open, f.follow, f.makePlan, f.read, f.reconcile, f.commit} {
		if err := step(ctx); err != nil {
			f.endFaults(ctx, err)
			if f.reader.CountsAgreed() && errors.Is(err, extract.ErrNoCount) {
				err = &extract.BreachError{Ignores: "what it told before: how many results there are", Proof: err.Error()}
			}
			return stopped(ctx, err)
		}
	}
	return nil
}

// open opens the outputs and the checkpoint, and decides what is read. Nothing is
// asked of the service before.
func (f *formRun) open(ctx context.Context) (err error) {
	r := f.reader
	if err := f.outputs.Open(ctx); err != nil {
		return err
	}
	f.o.Full = f.outputs.Full()
	f.reconciler.Full = f.o.Full
	if r.Checkpoint, err = openCheckpoint(ctx, r.Def, f.o, r.Name); err != nil {
		return err
	}
	r.Checkpoint.Mem = f.o.batches
	if f.left, err = f.inherit(ctx); err != nil {
		return err
	}
	f.iv = f.iv.Decide(f.reader.Def, f.o.Flags(), f.outputs.Manifests(), f.left.Oldest())
	tellTakenOver(f.left, f.iv, f.o.Resume)
	return nil
}

// makePlan divides the range into windows. A plan that cost many counts is kept
// in the checkpoint at once.
func (f *formRun) makePlan(ctx context.Context) (err error) {
	r, c := f.reader, f.reconciler
	f.report.Range = load.Span(f.iv.Read.From, f.iv.Read.To)
	before := f.requests().Count
	if c.Plan, err = f.planned(ctx); err != nil {
		return err
	}
	c.Interval, c.Windows, c.Parts, c.Files = f.iv, reading.Windows(c.Plan), f.outputs, f.outputs.HasFiles()
	c.Trusted = f.left != nil && f.left.Trusted
	for _, w := range c.Windows {
		w.Summed = c.SumsUp()
	}
	if r.Filtered() {
		r.Expect(extract.Unknown)
	} else {
		r.Expect(c.Plan.Total)
	}
	r.Log.LogAttrs(ctx, slog.LevelInfo, "planned",
		slog.String("range", f.iv.Read.String()), slog.Int("windows", len(c.Plan.Windows)),
		slog.Int64("results", c.Plan.Total), slog.Int64("count_requests", f.requests().Count-before))
	f.tally.plan(c.Windows)
	f.report.Planned = f.expects()
	r.At(pointPlanned)
	if f.left != nil || c.Plan.Requests < costlyPlan {
		return nil
	}
	return f.beginCheckpoint(ctx)
}

// begin settles the columns, and takes over what an earlier run left.
func (f *formRun) begin(ctx context.Context) error {
	err := f.reader.SettleSchema(ctx, reading.Start{
		Plan: f.reconciler.Plan, Windows: f.reconciler.Windows, Read: f.iv.Read, Kept: f.outputs.Kept, Left: f.left, Begin: f.beginCheckpoint,
	})
	if err != nil {
		return err
	}
	if err := f.takeOver(ctx); err != nil {
		return err
	}
	return f.beginCheckpoint(ctx)
}

// read reads every window that may hold results, and the results without a date.
func (f *formRun) read(ctx context.Context) error {
	r, c := f.reader, f.reconciler
	if err := f.begin(ctx); err != nil {
		return err
	}
	if err := r.Read(ctx, slices.DeleteFunc(slices.Clone(c.Windows), func(w *reading.Window) bool { return w.Done })); err != nil {
		return err
	}
	return c.ReadUndated(ctx)
}

// reconcile makes what was read agree. The snapshot is final then.
func (f *formRun) reconcile(ctx context.Context) (err error) {
	if err := f.reconciler.Reconcile(ctx); err != nil {
		return err
	}
	theirs, ours := f.reader.Client.Clocks()
	now := f.o.Now().In(f.reader.Def.Source.Zone)
	f.reconciler.Interval = f.reconciler.Interval.Behind(ours.Sub(theirs), now)
	if newest := f.reader.Pages.Newest(); newest.After(load.Wall(now).Add(interval.ClockLeeway)) {
		if theirs.IsZero() {
			ours = now
		}
		if what, cure := interval.Later(f.reader.Name, f.reader.Def.Source.Zone, newest, ours, theirs); what != "" {
			f.drift(what)
			f.reader.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("hint", cure))
		}
	}
	f.snapshot, err = f.reconciler.Snapshot(ctx)
	return err
}

// commit stages what was read at every output, and commits it.
func (f *formRun) commit(ctx context.Context) error {
	f.summarise(f.snapshot)
	err := f.outputs.Commit(ctx, f.snapshot, func(ctx context.Context) {
		f.tellStays(ctx, f.reader.Checkpoint.Clear(ctx))
	})
	if f.outputs.Committed() {
		f.progress(f.reader.Total(), f.reader.Expected(), true)
	}
	return err
}

// stopped gives the error of a run that was told to stop: the reason, and not the
// step that the run happened to be at, unless that failed for another reason.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if byStop := errors.Is(err, cause) || errors.Is(err, ctx.Err()); byStop && !output.Recorded(err) {
		return cause
	}
	return fmt.Errorf("%w; %w", cause, err)
}

// closed gives the error of a run whose outputs were closed. Where the run failed
// anyway, an error of closing goes to the log.
func (f *formRun) closed(ctx context.Context, err, closing error) error {
	if err == nil {
		return closing
	}
	if closing != nil {
		f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "not everything could be tidied up; the next run or `formetl clean` does it", slog.String("error", closing.Error()))
	}
	return err
}

// endReport fills in what the report tells of every run, also of one that failed.
func (f *formRun) endReport(err error) {
	r, c := f.report, f.reconciler
	r.EndedAt, r.Requests = f.o.Now().UTC(), f.requests()
	r.Windows, r.Reread, r.Older, r.Verified = len(c.Windows), c.Work.Reread, c.Work.Older, c.Verified
	r.Outputs = f.outputs.Reports()
	r.Spans = spansOf(c.Windows)
	if err != nil {
		r.Error, r.Err = err.Error(), err
	}
}

// requests are those that this form has cost so far.
func (f *formRun) requests() load.Requests {
	return requestsOf(f.reader.Client.Requests())
}

// drift adds a change of the form or the service to the report, once.
func (f *formRun) drift(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.report.Drift, what) {
		f.report.Drift = append(f.report.Drift, what)
	}
}

// progress tells the watcher how far the run is.
func (f *formRun) progress(rows, expected int64, done bool) {
	r := f.requests()
	f.o.Progress(Progress{
		Form: f.reader.Name, Rows: rows, Expected: expected, Done: done, Requests: r.All(),
		Windows: f.tally.planned.Load(), WindowsDone: f.tally.done.Load(), Forms: f.o.forms,
	})
}
