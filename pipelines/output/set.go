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
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// output is one place that a form's results go to.
type output interface {
	at() *place
	// stage encodes the results, once nothing is read any more, and makes them
	// durable and not yet visible. It is called from several goroutines at once.
	stage(ctx context.Context, s *reconcile.Snapshot) (*stagedOutput, error)
}

// stagedOutput is an output whose objects are prepared.
type stagedOutput struct {
	report Report
	// record records the commit, so that it is done whatever becomes of this
	// process, and gives the function that makes the results visible.
	record func(ctx context.Context) (publish func(context.Context) error, err error)
}

// target is an output of the run and what became of it. Several outputs
// commit each alone: one that fails is set aside and the others go on.
type target struct {
	def       definition.Output
	out       output // nil where it could not be opened
	report    Report
	staged    *stagedOutput
	publish   func(context.Context) error // nil before the commit is recorded
	committed bool
	err       error // its first failure; Set.mu guards both
}

// Set is the outputs of a form's run.
type Set struct {
	job     *Job
	targets []*target
	Kept    []schemas.Column // of the manifests that earlier runs left

	mu sync.Mutex // guards what became of the targets
}

// New is the outputs of a form that are not open yet.
func New(job *Job) *Set { return &Set{job: job} }

// Open opens every destination, takes its lease, finishes an interrupted commit,
// and looks at what earlier runs left. The set is to be closed, also with an
// error.
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

// openEach opens the outputs in the order of their paths, whatever order a
// definition has them in. Where another run of the same pipeline holds one, this
// run ends, because the other one is about to take the rest. So of two such runs
// one gets all outputs that both want.
func (s *Set) openEach(ctx context.Context) error {
	inOrder := slices.SortedStableFunc(slices.Values(s.targets), func(a, b *target) int { return cmp.Compare(a.def.Path, b.def.Path) })
	for _, t := range inOrder {
		p, err := s.job.placeOf(t.def)
		if err == nil {
			t.report.Path = p.Path
			t.out, err = p.open(ctx)
		}
		if err == nil {
			continue
		}
		if all := s.setAside(ctx, t, err); all != nil {
			return all
		}
		if held, ok := errors.AsType[*load.HeldError](err); ok && (held.Pipeline == s.job.Def.Name || held.RunID == "") { // a run that begins has no name yet
			return &OutputsError{Errors: []error{err}}
		}
	}
	return nil
}

// checkFits sets outputs aside that hold what the definition no longer says.
func (s *Set) checkFits(ctx context.Context) error {
	return s.eachTarget(ctx, func(_ context.Context, t *target) error {
		if d, ok := t.out.(*dataset); ok {
			return d.fits()
		}
		return nil
	})
}

// Manifests are those of the live datasets, nil for one that no run
// has committed.
func (s *Set) Manifests() (manifests []*load.Manifest) {
	for _, t := range s.live() {
		if t.def.Dataset() {
			manifests = append(manifests, t.out.at().manifest)
		}
	}
	return manifests
}

// setAside notes that an output failed. The run goes on with the others; the
// error is not nil where none is left, or where the run was stopped.
func (s *Set) setAside(ctx context.Context, t *target, err error) error {
	if ctx.Err() != nil {
		return err // the run ends, and not this output alone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.err == nil {
		t.err, t.report.Error = err, err.Error()
		if !errors.Is(err, syscall.EPIPE) { // the reader of standard output had enough
			s.job.Log.LogAttrs(ctx, slog.LevelError, "output failed", slog.String("path", t.report.Path), slog.String("error", err.Error()))
		}
	}
	if slices.ContainsFunc(s.targets, func(t *target) bool { return t.err == nil }) {
		return nil
	}
	return failures(s.targets)
}

// live are the targets that have not failed and are still to be committed.
func (s *Set) live() []*target {
	return s.those(func(t *target) bool { return t.err == nil && !t.committed })
}

// committed are the targets that were committed.
func (s *Set) committed() []*target {
	return s.those(func(t *target) bool { return t.committed })
}

func (s *Set) those(are func(*target) bool) (those []*target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.targets {
		if are(t) {
			those = append(those, t)
		}
	}
	return those
}

// HasFiles tells whether an output is no dataset: it holds the range that was
// asked for and no more.
func (s *Set) HasFiles() bool {
	return slices.ContainsFunc(s.live(), func(t *target) bool { return !t.def.Dataset() })
}

// LeasesHeld sets outputs aside that another run has taken over.
func (s *Set) LeasesHeld(ctx context.Context) error {
	return s.eachTarget(ctx, func(_ context.Context, t *target) error { return t.out.at().held() })
}

// closing bounds what a run still does at its destinations when it was told to
// stop. The run has ten seconds in all, and needs some of them to break off
// uploads or to finish a commit.
const closing = 3 * time.Second

// Close closes the outputs side by side, so that a store which does not answer
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
	_ = group.Wait() // the failures are kept apart
	return errors.Join(failures...)
}

// Reports tell of the outputs that were committed or failed, in the order of the
// definition.
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

// Base is what an output held when the run began.
type Base struct {
	Path    string
	Version string // of its manifest
	RunID   string // of the run that wrote it; "" where there was none
}

// Bases are those of the live outputs.
func (s *Set) Bases() (bases []Base) {
	for _, t := range s.live() {
		p := t.out.at()
		b := Base{Path: t.report.Path, Version: p.base}
		if p.manifest != nil {
			b.RunID = p.manifest.RunID
		}
		bases = append(bases, b)
	}
	return bases
}

// First is the destination of the first output, for a checkpoint beside it, with
// its path and what tells that its lease was lost. ok is false where the output
// could not be opened, or lies at another place for each run.
func (s *Set) First() (store load.Store, path string, held func() error, ok bool) {
	if len(s.targets) == 0 || s.targets[0].err != nil || !LastingPlace(s.targets[0].def) {
		return nil, "", nil, false
	}
	p := s.targets[0].out.at()
	return p.dest, p.Root, p.held, true
}

// LastingPlace tells whether each run writes an output to the same place. Then
// its lease keeps other runs away.
func LastingPlace(out definition.Output) bool {
	return out.Path != definition.StdoutPath && !strings.Contains(out.Path, "{run_id}")
}

// Before is the manifest that the form is compared with: that of the first
// output that has one. Child outputs are left out, because they lack the other
// columns. whole tells that the run's manifest will not keep columns that this run
// does not have.
func (s *Set) Before() (m *load.Manifest, whole bool) {
	for _, t := range s.live() {
		m := t.out.at().manifest
		if m == nil || t.def.Exploded() || m.Form != s.job.Form || m.Source != nil && m.Source.Account != s.job.Def.Source.Account {
			continue
		}
		return m, !t.def.Dataset() || s.job.Full
	}
	return nil, false
}

// DropStaged removes what a run was staging when it was killed, "" for none. Where
// that fails, clean removes it later.
func (s *Set) DropStaged(ctx context.Context, run string) {
	for _, t := range s.live() {
		p := t.out.at()
		if run == "" || p.dest == nil {
			continue
		}
		if err := load.DropStaged(ctx, p.dest, p.Scope, run); err != nil {
			s.job.Log.LogAttrs(ctx, slog.LevelWarn, "what an earlier run had staged cannot be removed; `formetl clean` does it",
				slog.String("path", t.report.Path), slog.String("error", err.Error()))
		}
	}
}
