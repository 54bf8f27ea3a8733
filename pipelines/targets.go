package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// output is one place that a form's results go to.
type output interface {
	// stage encodes the results, once nothing is read any more, and makes them
	// durable and not yet visible. It is called from several goroutines at once.
	stage(ctx context.Context) (*stagedOutput, error)
	// close gives the lease back. What was staged and not recorded is dropped.
	close(ctx context.Context) error
}

// stagedOutput is an output whose objects are prepared.
type stagedOutput struct {
	report OutputReport
	// record lets the commit be done, whatever becomes of this process.
	record func(ctx context.Context) (publisher, error)
}

// publisher is a recorded commit that makes the results visible.
type publisher interface {
	Publish(ctx context.Context) error
}

// target is an output of the run and what became of it. Several outputs
// commit each alone: one that fails is set aside and the others go on.
type target struct {
	def       definition.Output
	out       output // nil where it could not be opened
	report    OutputReport
	staged    *stagedOutput
	recorded  publisher
	committed bool
	err       error // its first failure; formRun.mu guards both
}

// openTargets opens every destination, takes its lease, looks at what earlier
// runs left, and widens the range to whole parts. Nothing is asked of the
// service before.
func (f *formRun) openTargets(ctx context.Context) error {
	for _, def := range f.def.Outputs {
		f.targets = append(f.targets, &target{def: def, report: OutputReport{Path: def.Path, Format: def.Format, Explode: def.Explode.String()}})
	}
	for _, step := range []func(context.Context) error{f.openEach, f.checkFits, f.settleKept, f.openCheckpoint} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	f.iv = f.iv.Decide(f.def, f.o.flags(), f.committedSets(), f.oldestPiece())
	f.report.Range = wallRange(f.iv.Read)
	f.tellTakenOver()
	return nil
}

// openEach opens the outputs in the order of their paths, whatever order a
// definition has them in. Where another run of the same pipeline holds one, the
// run ends: that one is about to take the others. So of two such runs, one has
// all that both want, and goes on.
func (f *formRun) openEach(ctx context.Context) error {
	inOrder := slices.SortedStableFunc(slices.Values(f.targets), func(a, b *target) int { return cmp.Compare(a.def.Path, b.def.Path) })
	for _, t := range inOrder {
		var err error
		if t.out, err = f.open(ctx, t); err == nil {
			continue
		}
		if all := f.setAside(ctx, t, err); all != nil {
			return all
		}
		if held, ok := errors.AsType[*load.HeldError](err); ok && (held.Pipeline == f.def.Name || held.RunID == "") { // one that begins has no name yet
			return &OutputsError{Errors: []error{err}}
		}
	}
	return nil
}

// checkFits sets outputs aside that hold what the definition no longer says.
func (f *formRun) checkFits(ctx context.Context) error {
	for _, t := range f.live() {
		d, ok := t.out.(*datasetOutput)
		if !ok {
			continue
		}
		if err := d.fits(); err != nil {
			if err := f.setAside(ctx, t, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// committedSets are the manifests of the live datasets, nil for one that no run
// has committed.
func (f *formRun) committedSets() (manifests []*load.Manifest) {
	for _, d := range f.datasets() {
		manifests = append(manifests, d.manifest)
	}
	return manifests
}

func (f *formRun) open(ctx context.Context, t *target) (output, error) {
	if t.def.Path == definition.StdoutPath {
		return f.openStream(t.def)
	}
	expanded, err := definition.ExpandPath(t.def.Path, f.def.PathValues(f.form, f.o.RunID))
	if err != nil {
		return nil, err
	}
	t.report.Path = expanded
	if t.def.Dataset() {
		return f.openDataset(ctx, t.def, expanded)
	}
	return f.openFile(ctx, t.def, expanded)
}

// setAside notes that an output failed. The run goes on with the others; the
// error is not nil where none is left, or where the run was stopped.
func (f *formRun) setAside(ctx context.Context, t *target, err error) error {
	if ctx.Err() != nil {
		return err // it is the run that ends
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.err == nil {
		t.err, t.report.Error = err, err.Error()
		if !errors.Is(err, syscall.EPIPE) { // a reader of standard output that had enough is no news
			f.log.LogAttrs(ctx, slog.LevelError, "output failed", slog.String("path", t.report.Path), slog.String("error", err.Error()))
		}
	}
	failed := &OutputsError{}
	for _, t := range f.targets {
		if t.err != nil {
			failed.Errors = append(failed.Errors, t.err)
		}
	}
	if len(failed.Errors) == len(f.def.Outputs) {
		return failed
	}
	return nil
}

// live are the targets that have not failed and are still to be committed.
func (f *formRun) live() []*target {
	f.mu.Lock()
	defer f.mu.Unlock()
	var live []*target
	for _, t := range f.targets {
		if t.err == nil && !t.committed {
			live = append(live, t)
		}
	}
	return live
}

// datasets are the live targets that are datasets.
func (f *formRun) datasets() []*datasetOutput {
	var sets []*datasetOutput
	for _, t := range f.live() {
		if d, ok := t.out.(*datasetOutput); ok {
			sets = append(sets, d)
		}
	}
	return sets
}

// hasFiles tells whether an output is no dataset: it holds the range that was
// asked for and no more.
func (f *formRun) hasFiles() bool { return len(f.datasets()) < len(f.live()) }

// leasesHeld sets outputs aside that another run has taken over.
func (f *formRun) leasesHeld(ctx context.Context) error {
	for _, t := range f.live() {
		o, leased := t.out.(interface{ held() error })
		if !leased {
			continue
		}
		if err := o.held(); err != nil {
			if err := f.setAside(ctx, t, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit stages every output, records the commits of all, and then publishes
// them, each step side by side. An output that fails does not stop the others.
func (f *formRun) commit(ctx context.Context) error {
	if err := f.leasesHeld(ctx); err != nil {
		return err
	}
	if err := f.summarise(ctx); err != nil {
		return err
	}
	f.at(pointSnapshot)
	if err := f.eachTarget(ctx, func(ctx context.Context, t *target) (err error) {
		t.staged, err = t.out.stage(ctx)
		return err
	}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f.publish(ctx); err != nil {
		return err
	}
	f.writeCodebooks(ctx)
	f.progress(0, true)
	return f.outcome(ctx)
}

// publish records the commits and carries them out. Once one is recorded, what
// was read is of no use to another run.
func (f *formRun) publish(ctx context.Context) error {
	lingering, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	err := f.eachTarget(lingering, func(ctx context.Context, t *target) error {
		recorded, err := t.staged.record(ctx)
		if err == nil {
			t.recorded = recorded
		}
		return err
	})
	if slices.ContainsFunc(f.targets, func(t *target) bool { return t.recorded != nil }) {
		if cleared := f.checkpoint.Clear(context.WithoutCancel(ctx)); cleared != nil {
			f.log.LogAttrs(ctx, slog.LevelWarn, "the checkpoint could not be removed; the next run does it", slog.String("error", cleared.Error()))
		}
	}
	if err != nil {
		return err
	}
	return f.eachTarget(lingering, func(ctx context.Context, t *target) error {
		if err := t.recorded.Publish(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		report := t.staged.report
		report.Path, report.Format, report.Explode = t.report.Path, t.report.Format, t.report.Explode
		t.report, t.committed = report, true
		return nil
	})
}

// eachTarget does something with all live outputs side by side, and sets those
// aside that fail.
func (f *formRun) eachTarget(ctx context.Context, do func(context.Context, *target) error) error {
	live := f.live()
	failures := make([]error, len(live))
	var group errgroup.Group
	for i, t := range live {
		group.Go(func() error {
			failures[i] = do(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // the failures are kept apart
	for i, t := range live {
		if failures[i] == nil {
			continue
		}
		if err := f.setAside(ctx, t, failures[i]); err != nil {
			return err
		}
	}
	return nil
}

// outcome is the error of a run that has committed what it could.
func (f *formRun) outcome(ctx context.Context) error {
	for _, t := range f.committed() {
		t.report.Warnings = f.tellWarnings(ctx, t)
		f.tellDamaged(ctx, t)
	}
	return f.failures()
}

// tellDamaged notes parts of a committed dataset that are not as its manifest
// says and that this run did not replace: the output's run fails for them.
func (f *formRun) tellDamaged(ctx context.Context, t *target) {
	d, ok := t.out.(*datasetOutput)
	if !ok {
		return
	}
	if err := d.damaged(); err != nil {
		_ = f.setAside(ctx, t, err) // the others are committed all the same
	}
}

// failures is an *OutputsError of the outputs that failed, nil if none did.
func (f *formRun) failures() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := &OutputsError{}
	for _, t := range f.targets {
		if t.err != nil {
			failed.Errors = append(failed.Errors, t.err)
		}
	}
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}

// closing bounds all that a run still does at its destinations when it was told
// to stop. It has ten seconds in all, of which uploads that are broken off, or
// a commit that had begun, may have taken some.
const closing = 3 * time.Second

// closeTargets closes the outputs side by side: a store that does not answer
// keeps no other from being closed in time.
func (f *formRun) closeTargets(ctx context.Context) error {
	ctx, cancel := load.Lingering(ctx, closing)
	defer cancel()
	failures := make([]error, len(f.targets))
	var group errgroup.Group
	for i, t := range f.targets {
		if t.out == nil {
			continue
		}
		group.Go(func() error {
			failures[i] = t.out.close(ctx)
			return nil
		})
	}
	_ = group.Wait() // the failures are kept apart
	return errors.Join(failures...)
}

// place is a destination that a run holds the lease of.
type place struct {
	path  string // for people
	dest  load.Destination
	lease load.Lease // nil where the destination knows none
}

// openPlace opens the destination at root and takes its lease. scope is "" for
// the whole destination, a file's name for that file.
func (f *formRun) openPlace(ctx context.Context, def definition.Output, path, root, scope string) (place, error) {
	p := place{path: path}
	var err error
	if p.dest, err = f.o.Tables.Open(ctx, root, def); err != nil {
		return p, err
	}
	leaser, ok := p.dest.(load.Leaser)
	if !ok {
		return p, nil
	}
	host, _ := os.Hostname() // shown to people only
	p.lease, err = leaser.Acquire(ctx, scope, load.Holder{
		RunID: f.o.RunID, Pipeline: f.def.Name, Host: host, PID: os.Getpid(), Since: f.o.Now().UTC(),
	})
	return p, err
}

// recover finishes the commit that a dead run left recorded.
func (p place) recover(ctx context.Context, f *formRun, scope string) (load.Recovery, error) {
	r, err := load.RecoverWith(ctx, p.dest, scope, p.hook(f))
	if err != nil {
		return r, fmt.Errorf("%s: %w", p.path, err)
	}
	if r.RunID != "" {
		what := "the commit of an earlier run was finished"
		if !r.Finished {
			what = "the commit of an earlier run could not be finished and was taken back; its results are read again"
		}
		f.log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("path", p.path), slog.String("earlier_run", r.RunID))
	}
	return r, nil
}

// held fails if someone else has taken the lease over.
func (p place) held() error {
	if p.lease == nil {
		return nil
	}
	select {
	case <-p.lease.Lost():
		return &load.HeldError{Path: p.path}
	default:
		return nil
	}
}

func (p place) release(ctx context.Context) error {
	if p.lease == nil {
		return nil
	}
	return p.lease.Release(ctx)
}

// drop removes staged objects that are not to be committed.
func (p place) drop(ctx context.Context, staged ...load.Prepared) error {
	ctx, cancel := load.Lingering(ctx, closing)
	defer cancel()
	return load.AbortAll(ctx, p.dest, staged...)
}

// hook stops a commit that someone else may be finishing by now: what is
// recorded is done by whoever holds the lease.
func (p place) hook(f *formRun) load.Hook {
	return func(step load.Step) error {
		f.at(string(step))
		return p.held()
	}
}

// commitGrace is how long a commit that has begun may still take when the run
// is told to stop: a recorded commit is finished by the next run, but one that
// is done now needs none.
const commitGrace = 1500 * time.Millisecond

// mustStay tells whether a failed commit needs its staged objects: it is
// recorded, and the next run finishes it.
func mustStay(err error) bool {
	c, ok := errors.AsType[*load.CommitError](err)
	return ok && c.Recorded
}
