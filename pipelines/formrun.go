package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/pipelines/uploads"
)

// runForm runs one form. If the service does not tell what changed, or tells no counts, the run
// begins again without changes or counts. If results are dated later than now, it begins again
// with a range that ends later.
func runForm(ctx context.Context, def *definition.Definition, o Options, client extract.Client, form string) (*FormReport, error) {
	f := newFormRun(def, o, client.Fork(), form)
	for {
		err := f.run(ctx)
		late, isLate := errors.AsType[*reconcile.LateError](err)
		noFeed, _ := errors.AsType[*extract.FeedError](err)
		why := f.countless(err)
		switch {
		case isLate && f.beyond.IsZero():
			f = f.again(ctx, "the run begins again, and reads up to the newest result", err)
			f.beyond = late.Beyond
		case noFeed != nil && f.noFeed == nil:
			what := "the service's list of changes cannot be used; the run begins again without it"
			if noFeed.Sorts {
				what += ", and reads all parts again"
			}
			f = f.again(ctx, what, err)
			f.noFeed = noFeed
		case f.reader.Countless == "" && why != "":
			f.reader.Countless = why
			f = f.again(ctx, "the service gives no reliable counts; the run starts over without them, and cannot prove that no result is missing", err)
			f.drift(why)
		default:
			return f.report, err
		}
	}
}

// again returns a new formRun with which the run of the form begins again. The requests of
// both are counted together. what and why are for the log.
func (f *formRun) again(ctx context.Context, what string, why error) *formRun {
	level := slog.LevelWarn
	if f.reader.Def.File == "" { // an export's last lines tell what it is not sure of
		level = slog.LevelInfo
	}
	f.reader.Log.LogAttrs(ctx, level, what, slog.String("reason", strings.TrimSuffix(why.Error(), "; nothing was written")))
	again := newFormRun(f.reader.Def, f.o, f.reader.Client, f.reader.Name)
	again.report.StartedAt, again.reader.Began = f.report.StartedAt, f.report.StartedAt
	again.noFeed, again.reader.Countless, again.beyond = f.noFeed, f.reader.Countless, f.beyond
	again.reader.Pages.DoubtEnds(f.reader.Countless != "")
	return again
}

// API v2 has no request for a count. Counts are taken from its headers, and nothing
// promises what these hold (service-v2.md, section 9).
const (
	tellsNoCounts    = "the service gives no counts to check the results by"
	tellsWrongCounts = "the service gives no reliable counts: those in its headers never agreed with the results that it sent"
)

// countless returns why a failed run may begin again without counts: the service has told no
// count that agreed with what it sent. It returns "" if counts are not why the run failed.
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

// formRun is the run of one form: what its steps use, and its report.
type formRun struct {
	o          Options
	reader     *reading.Reader
	job        *output.Job
	outputs    *output.Set
	uploads    *uploads.Folder       // nil if uploaded files are not stored
	noFeed     *extract.FeedError    // why the feed of changes is not asked; nil if it may be
	beyond     time.Time             // see reading.RangeFlags.Beyond
	counts     reading.Counts        // the service's counts for the plan, also of an earlier run
	reconciler *reconcile.Reconciler // nil until the run is planned

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
		Keeps: keepsRead,
		Watch: func(read, expected int64) { f.progress(read, expected, false) },
	}
	f.reader.Pages.Notice = f.drift
	f.job = &output.Job{
		Def: def, Form: form, RunID: o.RunID, Full: o.Full, BuiltIn: o.BuiltIn, Stdout: o.Stdout, Now: o.Now, Log: f.reader.Log, At: o.At,
		Encoders: o.encoders, Requests: f.requests, Drift: f.drift, Guarded: o.Guarded,
	}
	f.outputs = output.New(f.job)
	return f
}

// run does the whole run of the form. Whatever happens, leases are given back, and what was
// read and not committed is kept for the next run or removed.
func (f *formRun) run(ctx context.Context) (err error) {
	defer func() { f.endReport(err) }()
	flags := f.o.Flags(f.reader.Def)
	flags.Beyond = f.beyond
	asked, err := reading.NewInterval(f.reader.Def, flags, f.o.Now())
	if err != nil {
		return err
	}
	defer func() {
		closing := f.outputs.Close(ctx)
		if f.uploads != nil {
			closing = errors.Join(closing, f.uploads.Close(ctx))
		}
		if err == nil {
			err = closing
		} else if closing != nil {
			f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "some leftovers of this run could not be removed; once what the error says is mended, the next run or `formetl clean` removes them", slog.String("error", closing.Error()))
		}
	}()
	defer func() { f.closeCheckpoint(ctx, err) }()
	err = f.steps(ctx, asked)
	if err == nil {
		return nil
	}
	if spent, ok := errors.AsType[*transport.BudgetError](err); ok && f.inVain(spent) {
		return &definition.Fault{
			Code: 78, Text: fmt.Sprintf("per_day: %d is too small: the run spent a whole day's requests and read nothing from which the next run could go on", spent.Limit),
			Cure: "set a larger source.requests.per_day, if the service allows it; or set extract.from, which needs fewer requests but leaves out results without a date",
		}
	}
	f.endFaults(ctx, err)
	if f.reader.CountsAgreed() && errors.Is(err, extract.ErrNoCount) {
		err = &extract.BreachError{Ignores: "the count of results, which it gave before", Proof: err.Error()}
	}
	return stopped(ctx, err)
}

// inVain tells whether the run had the budget of a whole day for itself, and yet neither made a
// plan nor read a piece that another run may take over. The next day's run would end likewise.
func (f *formRun) inVain(spent *transport.BudgetError) bool {
	own := f.requests()
	if spent.Per != 24*time.Hour || 10*(own.Results+own.Count) < 9*int64(spent.Limit) { // some may be reserved and not sent
		return false
	}
	planned := f.reconciler != nil && len(f.reader.Header.Runs) == 1 // a run that continues another found the plan there
	return !planned && !slices.ContainsFunc(f.windows(), func(w *reading.Window) bool {
		return slices.ContainsFunc(w.Pieces(), func(p checkpoint.Piece) bool { return !p.Passing && p.Run == f.o.RunID })
	})
}

// steps does the steps of a run: it opens outputs and the checkpoint, extracts, and commits.
func (f *formRun) steps(ctx context.Context, asked reading.Interval) error {
	inherited, err := f.open(ctx)
	if err != nil {
		return err
	}
	snapshot, err := f.extract(ctx, asked, inherited)
	if err != nil {
		return err
	}
	if f.uploads != nil {
		if err := f.fetch(ctx, snapshot); err != nil {
			return err
		}
	}
	return f.commit(ctx, snapshot)
}

// fetch fetches the uploaded files of the snapshot's results, before outputs list them. The files
// of results that are proven to be deleted are removed.
func (f *formRun) fetch(ctx context.Context, s *reconcile.Snapshot) error {
	gone, err := f.deleted(ctx, s)
	if err != nil {
		return err
	}
	return f.uploads.Fetch(ctx, s, gone, func() { f.progress(f.reader.Total(), f.reader.Expected(), false) })
}

// deleted returns results with uploaded files that are proven to be deleted: those that lie in no
// part any more that the run made again, or, if the run read all results, that it did not find.
// There are none if their files are kept, or if nothing was compared with counts, because a result
// that did not come may be there all the same.
func (f *formRun) deleted(ctx context.Context, s *reconcile.Snapshot) (gone idset.Set, err error) {
	known := f.uploads.Results()
	if known.IsEmpty() || f.reader.Def.Files.KeepDeleted || s.Verified.Reason != "" || s.Verified.Unproven != "" {
		return nil, nil
	}
	if gone = known; !s.Interval.Everything() {
		gone, err = f.outputs.IDs(ctx, func(d reconcile.Dataset) []load.Part {
			if d.Child {
				return nil
			}
			replaced, _ := s.Replaced.Divide(d.Manifest)
			return replaced
		})
		if errors.Is(err, idset.ErrDamaged) {
			return nil, nil // the ids are not known
		}
	}
	for _, w := range s.Windows {
		gone = gone.Without(w.IDs)
	}
	return gone, err
}

// extract decides what is read, plans and reads it, and makes it agree with counts and older
// parts. It ends early once other runs have taken over every output.
func (f *formRun) extract(ctx context.Context, asked reading.Interval, inherited *checkpoint.Inherited) (_ *reconcile.Snapshot, err error) {
	guarded, unguard := f.outputs.Guard(ctx)
	defer func() {
		if ctx.Err() == nil {
			err = stopped(guarded, err)
		}
		unguard()
	}()
	d, err := f.decide(guarded, asked, inherited)
	if err != nil {
		return nil, err
	}
	if f.reconciler, err = f.plan(guarded, d); err != nil {
		return nil, err
	}
	if err := f.read(guarded, f.reconciler, inherited); err != nil {
		return nil, err
	}
	return f.reconcile(guarded, f.reconciler)
}

// open opens the outputs and the checkpoint. It returns what an earlier run read and this one
// may take over, or nil if nothing can be taken over. It asks nothing of the service.
func (f *formRun) open(ctx context.Context) (inherited *checkpoint.Inherited, err error) {
	if err := f.outputs.Open(ctx); err != nil {
		return nil, err
	}
	f.o.Full = f.outputs.Full()
	r := f.reader
	if r.Def.Files != nil {
		if f.uploads, err = uploads.Open(ctx, f.job, r.Client); err != nil {
			return nil, err
		}
		f.job.Files, f.report.Files = f.uploads, f.uploads.Report()
	}
	slots := 1
	if !slices.ContainsFunc(r.Def.Outputs, definition.Output.Lasting) {
		slots = ownSlots
	}
	if r.Checkpoint, err = checkpoint.Open(ctx, f.o.State, CheckpointKey(r.Def, r.Name), slots, f.o.Job(r.Def, r.Name).Holder()); err != nil {
		return nil, err
	}
	r.Checkpoint.Mem = f.o.batches
	if r.Header, err = f.header(); err != nil {
		return nil, err
	}
	return f.inherit(ctx)
}

// decision is what a run is to read.
type decision struct {
	reading.Interval
	inherited *checkpoint.Inherited // what an earlier run read; nil if nothing can be taken over
	changes   *reconcile.Changes    // what the service names as changed; nil if it was not asked
	lookback  string                // why the lookback is read, see reconcile.Start.Lookback
}

// decide decides what the run reads, by how far earlier runs came and by what the service says
// has changed since.
func (f *formRun) decide(ctx context.Context, asked reading.Interval, inherited *checkpoint.Inherited) (*decision, error) {
	d := &decision{Interval: asked.Decide(f.reader.Def, f.o.Flags(f.reader.Def), f.outputs.Manifests(), inherited.Oldest()), inherited: inherited}
	if f.o.Full && d.Read.From.Before(d.Given.From) {
		f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "this run replaces the whole dataset, so it also reads the parts before `from` again", slog.String("range", d.Read.Dates()))
	}
	for _, out := range f.outputs.Datasets() {
		if f.reader.Def.Extract.Incremental && !f.o.Full && !d.Continues && out.Manifest == nil {
			f.reader.Log.LogAttrs(ctx, slog.LevelInfo, "this output is new or empty; it has no watermark to continue from", slog.String("path", out.Path))
		}
	}
	tellTakenOver(inherited, d.Interval, f.o.Resume)
	return d, f.follow(ctx, d)
}

// plan divides the range into windows, and returns the reconciler for these windows. A plan
// that cost many counts is kept in the checkpoint at once.
func (f *formRun) plan(ctx context.Context, d *decision) (*reconcile.Reconciler, error) {
	r := f.reader
	f.report.Range = load.Span(d.Read.From, d.Read.To)
	before := f.requests().Count
	plan, err := f.planned(ctx, d)
	if err != nil {
		return nil, err
	}
	c := reconcile.New(r, reconcile.Start{
		Interval: d.Interval, Plan: plan, Parts: f.outputs, Full: f.o.Full, Files: f.outputs.HasFiles(),
		Trusted: d.inherited != nil && d.inherited.Trusted, Lookback: d.lookback, Changes: d.changes,
	})
	if r.Filtered() {
		r.Expect(extract.Unknown)
	} else {
		r.Expect(plan.Total)
	}
	planned := []slog.Attr{slog.String("range", d.Read.Dates()), slog.Int("windows", len(plan.Windows)), slog.Int64("count_requests", f.requests().Count-before)}
	if plan.Total != extract.Unknown {
		planned = append(planned, slog.Int64("results", plan.Total))
	}
	r.Log.LogAttrs(ctx, slog.LevelInfo, "planned", planned...)
	if wide := d.Widened(); wide != "" && !f.o.Full {
		r.Log.LogAttrs(ctx, slog.LevelInfo, wide)
	}
	r.Planned(c.Windows)
	f.report.Planned = f.expects(d, plan)
	r.At(pointPlanned)
	if f.headerOf(d, c.Verifies()); d.inherited != nil || plan.Requests < costlyPlan {
		return c, nil
	}
	return c, r.Begin(ctx)
}

// read settles the columns, takes over what an earlier run left, and reads every window that may
// hold results, and the results without a date.
func (f *formRun) read(ctx context.Context, c *reconcile.Reconciler, inherited *checkpoint.Inherited) error {
	r := f.reader
	if err := r.ChooseSchema(ctx, reading.Start{Plan: c.Plan, Windows: c.Windows, Read: c.Interval.Read, Known: f.outputs.Columns, Names: f.outputs.Names(), Inherited: inherited}); err != nil {
		return err
	}
	if err := f.takeOver(ctx, c.Windows, inherited); err != nil {
		return err
	}
	if err := r.Begin(ctx); err != nil {
		return err
	}
	if err := r.Read(ctx, slices.DeleteFunc(slices.Clone(c.Windows), func(w *reading.Window) bool { return w.Done })); err != nil {
		return err
	}
	return c.ReadUndated(ctx)
}

// reconcile makes what was read agree with counts and older parts, and warns of clocks or a
// zone that are wrong. It returns the final snapshot.
func (f *formRun) reconcile(ctx context.Context, c *reconcile.Reconciler) (*reconcile.Snapshot, error) {
	if err := c.Reconcile(ctx); err != nil {
		return nil, err
	}
	theirs, ours := f.reader.Client.Clocks()
	now := f.o.Now().In(f.reader.Def.Source.Zone)
	c.Interval = c.Interval.Behind(ours.Sub(theirs), now)
	if newest := f.reader.Pages.Newest(); newest.After(load.Wall(now).Add(reading.ClockLeeway)) {
		if theirs.IsZero() {
			ours = now
		}
		if wrong := reconcile.Later(f.reader.Name, f.reader.Def.Source.Zone, newest, ours, theirs); wrong != nil {
			f.drift(wrong.Text + "; " + wrong.Cure)
		}
	}
	return c.Snapshot(ctx)
}

// commit stages the snapshot at every output, and commits it.
func (f *formRun) commit(ctx context.Context, snapshot *reconcile.Snapshot) error {
	f.summarise(snapshot)
	err := f.outputs.Commit(ctx, snapshot, func(ctx context.Context) {
		f.tellStays(ctx, f.reader.Checkpoint.Clear(ctx))
	})
	if !f.outputs.Committed() {
		return err
	}
	f.progress(f.reader.Total(), f.reader.Expected(), true)
	if f.uploads != nil {
		tidying, cancel := load.Lingering(ctx, load.Grace)
		defer cancel()
		if left := f.uploads.Tidy(tidying); left != nil {
			f.reader.Log.LogAttrs(ctx, slog.LevelWarn, "some uploaded files of deleted results could not be removed and are still there; once what the error says is mended, a run with --full removes them", slog.String("error", left.Error()))
		}
	}
	return err
}

// stopped returns the error of a run that was told to stop: the reason for the stop. Where the
// step failed for another reason, or its commit is recorded, the step's error follows. Of a run
// that was not told to stop it returns err.
func stopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if byStop := errors.Is(err, cause) || errors.Is(err, ctx.Err()); byStop && !output.Recorded(err) {
		return cause
	}
	return fmt.Errorf("%w; %w", cause, err)
}

// endReport fills in what the report tells of every run, also of a run that failed.
func (f *formRun) endReport(err error) {
	r := f.report
	r.EndedAt, r.Requests, r.Outputs = f.o.Now().UTC(), f.requests(), f.outputs.Reports()
	r.Windows, r.Spans = len(f.windows()), spansOf(f.windows())
	f.expectUndated()
	if c := f.reconciler; c != nil {
		r.Reread, r.Older, r.Verified = c.Reread, c.Older, c.Verified
	}
	if err != nil {
		r.Error, r.Err = err.Error(), err
		if r.Verified != nil && r.Verified.Unproven == "" { // an output lacks what was proven; manifests of others have the proof
			r.Verified = nil
		}
	}
}

// windows returns the windows that the run has planned so far.
func (f *formRun) windows() []*reading.Window {
	if f.reconciler == nil {
		return nil
	}
	return f.reconciler.Windows
}

// requests returns how many requests this form has cost so far.
func (f *formRun) requests() load.Requests {
	return requestsOf(f.reader.Client.Requests())
}

// drift adds a text about a change of the form or the service to the report, unless it has
// that text already.
func (f *formRun) drift(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.report.Drift, what) {
		f.report.Drift = append(f.report.Drift, what)
	}
}

// progress calls Options.Progress with how far the form's run has come.
func (f *formRun) progress(rows, expected int64, done bool) {
	r := f.requests()
	windows, read := f.reader.Windows()
	p := Progress{
		Form: f.reader.Name, Rows: rows, Expected: expected, Done: done, Requests: r.All(), Files: r.Files,
		Windows: windows, WindowsDone: read, Forms: f.o.forms, PerMinute: int64(f.reader.Def.Source.Requests.PerMinute),
	}
	if f.uploads != nil {
		p.FilesPlanned = max(r.Files, f.uploads.Report().Planned)
	}
	f.o.Progress(p)
}
