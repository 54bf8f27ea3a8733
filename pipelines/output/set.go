package output

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// output is one destination of a form's results.
type output interface {
	at() *place
	// stage encodes the results after all reading has ended. It makes them
	// durable but not yet visible. Several goroutines may call it at once.
	stage(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error)
}

// stagedOutput is an output whose objects are prepared for the commit.
type stagedOutput struct {
	report Report
	// record records the commit, so that it is completed even if this process
	// dies. It returns the function that makes the results visible.
	record func(ctx context.Context) (publish func(context.Context) error, err error)
}

// target is an output of the run and its state. Each output commits on its own.
// If one fails, it is set aside, and the others go on.
type target struct {
	def       definition.Output
	out       output // nil if it could not be opened
	report    Report
	staged    *stagedOutput
	publish   func(context.Context) error // nil before the commit is recorded
	committed bool
	err       error // the first failure; Set.mu guards err and committed
}

// Set holds all outputs of one form in a run.
type Set struct {
	job     *Job
	targets []*target
	Kept    []schemas.Column // columns in the manifests of earlier runs

	mu sync.Mutex // guards the state of the targets
}

// New returns the set of a form's outputs. None of them is open yet.
func New(job *Job) *Set { return &Set{job: job} }

// Open opens every destination, takes its lease, finishes an interrupted
// commit, and looks at what earlier runs left. The caller closes the set, even
// after an error.
func (s *Set) Open(ctx context.Context) error {
	for _, def := range s.job.Def.Outputs {
		s.targets = append(s.targets, &target{def: def, report: Report{Path: def.Path, Format: def.Format, Explode: def.Explode.String()}})
	}
	for _, step := range []func(context.Context) error{s.openEach, s.checkFits, s.settleKept} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openEach opens the outputs in the order of their paths, not in that of the
// definition. The run ends if another run of the same pipeline holds an output.
// That run is about to take the others as well. Thus one of two such runs gets
// all outputs that both want.
func (s *Set) openEach(ctx context.Context) error {
	inOrder := slices.SortedStableFunc(slices.Values(s.targets), func(a, b *target) int { return cmp.Compare(a.def.Path, b.def.Path) })
	for _, t := range inOrder {
		p, err := s.job.placeOf(t.def)
		if err == nil {
			t.report.Path = p.Path
			t.out, err = p.open(ctx)
		}
		if err == nil {
			tellOther(ctx, s.job, t)
			continue
		}
		if all := s.setAside(ctx, t, err); all != nil {
			return all
		}
		if held, ok := errors.AsType[*load.HeldError](err); ok && (held.Pipeline == s.job.Def.Name || held.RunID == "") { // it has just begun: no name yet
			return &OutputsError{Errors: []error{err}}
		}
	}
	return nil
}

// tellOther warns of an output that another pipeline wrote last. Two definitions with one
// path replace each other's rows for ever, and both succeed.
func tellOther(ctx context.Context, job *Job, t *target) {
	m, is := t.out.at().manifest, job.Def.Name
	if m == nil || job.Def.File == "" || m.Pipeline == is {
		return
	}
	job.Log.LogAttrs(ctx, slog.LevelWarn, "another pipeline wrote this output last; give each its own path, unless you have renamed it",
		slog.String("path", t.report.Path), slog.String("was", m.Pipeline), slog.String("is", is))
}

// checkFits sets aside the datasets that the definition no longer fits.
func (s *Set) checkFits(ctx context.Context) error {
	return s.eachTarget(ctx, func(_ context.Context, t *target) error {
		if d, ok := t.out.(*dataset); ok {
			return d.fits()
		}
		return nil
	})
}

// Manifests returns the manifests of the live datasets, nil for a dataset that
// no run has committed.
func (s *Set) Manifests() (manifests []*load.Manifest) {
	for _, t := range s.live() {
		if t.def.Dataset() {
			manifests = append(manifests, t.out.at().manifest)
		}
	}
	return manifests
}

// setAside notes that an output failed. It returns nil if the run can go on with
// other outputs. It returns an error if none is left or the run was stopped.
func (s *Set) setAside(ctx context.Context, t *target, err error) error {
	if ctx.Err() != nil {
		return err // the whole run ends, so this output did not fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.err == nil {
		t.err, t.report.Error = err, err.Error()
		t.report.tellHeld(t)
		if !errors.Is(err, syscall.EPIPE) { // nobody reads standard output any more
			s.job.Log.LogAttrs(ctx, slog.LevelError, "output failed", slog.String("path", t.report.Path), slog.String("error", brief(t.report.Path, err)))
		}
	}
	if slices.ContainsFunc(s.targets, func(t *target) bool { return t.err == nil }) {
		return nil
	}
	return failures(s.targets)
}

// brief is what an output failed of, without its path and without what to do about it:
// the command tells the whole error once, at its end.
func brief(path string, err error) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), path+": "), "; ")
	return text
}

// live returns the targets that have not failed and are not committed yet.
func (s *Set) live() []*target {
	return those(s, func(t *target) bool { return t.err == nil && !t.committed })
}

// committed returns the targets that were committed.
func (s *Set) committed() []*target {
	return those(s, func(t *target) bool { return t.committed })
}

func those(s *Set, are func(*target) bool) (those []*target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.targets {
		if are(t) {
			those = append(those, t)
		}
	}
	return those
}

// HasFiles tells whether an output is not a dataset. Such an output holds
// exactly the range that was asked for.
func (s *Set) HasFiles() bool {
	return slices.ContainsFunc(s.live(), func(t *target) bool { return !t.def.Dataset() })
}

// LeasesHeld sets aside the outputs that another run has taken over.
func (s *Set) LeasesHeld(ctx context.Context) error {
	return s.eachTarget(ctx, func(_ context.Context, t *target) error { return t.out.at().held() })
}

// closing limits how long a stopped run still works at its destinations. Its
// process may end earlier, but the one of a worker may live on.
const closing = 3 * time.Second

// Close closes all outputs at once, so that a store which does not answer
// delays no other.
func (s *Set) Close(ctx context.Context) error {
	ctx, cancel := load.Lingering(ctx, closing)
	defer cancel()
	failures := make([]error, len(s.targets))
	var group errgroup.Group
	for i, t := range s.targets {
		if t.out == nil {
			continue
		}
		group.Go(func() error {
			failures[i] = t.out.at().close(ctx)
			return nil
		})
	}
	_ = group.Wait() // failures holds the errors
	return errors.Join(failures...)
}

// Reports returns the reports of the outputs that were committed or failed, in
// the order of the definition.
func (s *Set) Reports() []Report {
	reports := []Report{}
	for _, t := range s.targets {
		if t.committed || t.err != nil {
			reports = append(reports, t.report)
		}
	}
	return reports
}

// Committed tells whether an output was committed.
func (s *Set) Committed() bool {
	return slices.ContainsFunc(s.targets, func(t *target) bool { return t.committed })
}

// Bases returns what each live output held when the run began.
func (s *Set) Bases() (bases []checkpoint.Base) {
	for _, t := range s.live() {
		p := t.out.at()
		b := checkpoint.Base{Path: t.report.Path, Version: p.base}
		if p.manifest != nil {
			b.RunID = p.manifest.RunID
		}
		bases = append(bases, b)
	}
	return bases
}

// Before returns the manifest that the form is compared with: that of the first
// output that has one. It skips child outputs, because they lack the other
// columns. whole means that the run's new manifest will drop columns that this
// run does not have. m is nil if there is none.
func (s *Set) Before() (m *load.Manifest, whole bool) {
	for _, t := range s.live() {
		m := t.out.at().manifest
		if m == nil || t.def.Exploded() || m.Form != s.job.Form || m.Source.Account != s.job.Def.Source.Account {
			continue
		}
		return m, !t.def.Dataset() || s.job.Full
	}
	return nil, false
}

// DropStaged removes the objects that killed runs had staged. runs are their ids. If the
// removal fails, `formetl clean` removes them later.
func (s *Set) DropStaged(ctx context.Context, runs ...string) {
	for _, t := range those(s, func(t *target) bool { return t.err == nil }) {
		p := t.out.at()
		if p.dest == nil {
			continue
		}
		if err := load.DropStaged(ctx, p.dest, p.Scope, runs...); err != nil {
			s.job.Log.LogAttrs(ctx, slog.LevelWarn, "what an earlier run had staged cannot be removed; `formetl clean` does it",
				slog.String("path", t.report.Path), slog.String("error", err.Error()))
		}
	}
}

// Commit stages all outputs, then records their commits, then publishes them.
// It does each step for all outputs at once. If some outputs fail, the others
// go on, and the error is an *OutputsError. It calls recorded once a commit is
// recorded, before it publishes any.
func (s *Set) Commit(ctx context.Context, snapshot *reconcile.Snapshot, recorded func(context.Context)) error {
	if err := s.LeasesHeld(ctx); err != nil {
		return err
	}
	s.job.At(PointSnapshot)
	if err := s.eachTarget(ctx, func(ctx context.Context, t *target) (err error) {
		t.staged, err = t.out.stage(ctx, snapshot)
		return t.out.at().named(err)
	}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.publish(ctx, recorded); err != nil {
		return err
	}
	s.writeCodebooks(ctx, snapshot.Schema)
	return s.outcome(ctx)
}

// publish records the commits and carries them out. After the first record, no
// other run may take over what was read.
func (s *Set) publish(ctx context.Context, recorded func(context.Context)) error {
	lingering, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	err := s.eachTarget(lingering, func(ctx context.Context, t *target) error {
		publish, err := t.staged.record(ctx)
		if err == nil {
			t.publish = publish
		}
		return err
	})
	if slices.ContainsFunc(s.targets, func(t *target) bool { return t.publish != nil }) {
		recorded(context.WithoutCancel(ctx))
	}
	if err != nil {
		return err
	}
	return s.eachTarget(lingering, func(ctx context.Context, t *target) error {
		if err := t.publish(ctx); err != nil {
			return t.out.at().named(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		report := t.staged.report
		report.Path, report.Format, report.Explode = t.report.Path, t.report.Format, t.report.Explode
		t.report, t.committed = report, true
		return nil
	})
}

// eachTarget calls do for all live outputs at once. It sets aside those that
// fail, and returns an error only if the run cannot go on.
func (s *Set) eachTarget(ctx context.Context, do func(context.Context, *target) error) error {
	live := s.live()
	failures := make([]error, len(live))
	var group errgroup.Group
	for i, t := range live {
		group.Go(func() error {
			failures[i] = do(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // failures holds the errors
	for i, t := range live {
		if failures[i] == nil {
			continue
		}
		if err := s.setAside(ctx, t, failures[i]); err != nil {
			return err
		}
	}
	return nil
}

// outcome returns the error of a run that has committed what it could: an
// *OutputsError of the failed outputs, or nil. A committed dataset also counts
// as failed if its kept parts do not match its manifest.
func (s *Set) outcome(ctx context.Context) error {
	for _, t := range s.committed() {
		if d, ok := t.out.(*dataset); ok {
			if err := d.damaged(); err != nil {
				_ = s.setAside(ctx, t, err) // the commits of the others stay
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return failures(s.targets)
}

// failures returns an *OutputsError of the outputs that failed, or nil if none did.
func failures(targets []*target) error {
	failed := &OutputsError{}
	for _, t := range targets {
		if t.err != nil {
			failed.Errors = append(failed.Errors, t.err)
		}
	}
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}

// Look opens the outputs without leases, and reads only the manifests of
// datasets. Like Open it fails if the definition no longer fits them.
func Look(ctx context.Context, job *Job) (*Set, error) {
	s := &Set{job: job}
	for _, out := range job.Def.Outputs {
		t := &target{def: out}
		s.targets = append(s.targets, t)
		if !out.Dataset() {
			continue
		}
		p, err := job.lookAt(ctx, out)
		if err != nil {
			return s, err
		}
		d := &dataset{place: p}
		t.out = d
		if err := d.fits(); err != nil {
			return s, err
		}
		if job.Full {
			continue
		}
		if _, err := p.columnsKept(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// lookAt returns the place of an output with the manifest that an earlier run
// left there. It takes no lease.
func (j *Job) lookAt(ctx context.Context, out definition.Output) (*place, error) {
	p, err := j.placeOf(out)
	if err != nil {
		return nil, err
	}
	if p.dest, err = j.Tables.Open(ctx, p.Root, out); err != nil {
		return nil, err
	}
	p.manifest, p.base, err = ManifestAt(ctx, p.dest, p.Manifest, out)
	return p, p.named(err)
}

// Manifest returns the manifest that an earlier run left at an output, or nil
// if there is none.
func (j *Job) Manifest(ctx context.Context, out definition.Output) (*load.Manifest, error) {
	p, err := j.lookAt(ctx, out)
	if err != nil {
		return nil, err
	}
	return p.manifest, nil
}

// Location says where an output of a form lies.
type Location struct {
	Path     string // full path, without placeholders, for people
	Root     string // root of its destination
	Scope    string // scope of its lease: "" for a dataset, a file's name for that file
	Manifest string // name of its manifest at the destination
}

// Locate returns the location of a form's output. The path may depend on the run's id.
func Locate(def *definition.Definition, out definition.Output, form, runID string) (at Location, err error) {
	if at.Path, err = definition.ExpandPath(out.Path, def.PathValues(form, runID)); err != nil {
		return at, err
	}
	if at.Root, at.Manifest = at.Path, load.ManifestName; !out.Dataset() {
		at.Root, at.Scope = definition.SplitPath(at.Path)
		at.Manifest = load.FileManifestName(at.Scope)
	}
	return at, nil
}
