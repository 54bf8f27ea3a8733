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

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// output is one destination of a form's results: a dataset, a file or standard output.
// Each commits on its own. If one fails, it is set aside, and the others go on.
type output interface {
	at() *place
	// look reads what the last run left at the output. It takes no lease.
	look(ctx context.Context) error
	// open takes the lease of the destination, finishes the commit of a run that ended
	// early, and reads what the last run left.
	open(ctx context.Context) error
	// stage encodes the results after all reading has ended. It makes the encoded objects
	// durable but not yet visible.
	stage(ctx context.Context, s *reconcile.Snapshot) error
	// record records the commit of the output, so that a later run completes it if this
	// process dies.
	record(ctx context.Context) error
}

// continued is an output that later runs continue: a dataset, or a table.
type continued interface {
	output
	// fits returns the columns in the output's manifest, which runs begin with, see
	// dataset.fits.
	fits() ([]schemas.Column, error)
	// lookAround compares what is there with the manifest.
	lookAround(ctx context.Context) error
	set() *dataset
}

// Set holds all outputs of one form in a run.
type Set struct {
	job     *Job
	outputs []output
	Columns []schemas.Column // columns in the manifests of earlier runs

	mu sync.Mutex // guards the errors, commits and reports of the outputs
}

// New returns the set of a form's outputs. None of them is open yet.
func New(job *Job) *Set {
	s := &Set{job: job}
	for _, def := range job.Def.Outputs {
		s.outputs = append(s.outputs, newOutput(job, def))
	}
	return s
}

// newOutput returns the output that the definition describes.
func newOutput(job *Job, def definition.Output) output {
	switch p := newPlace(job, def); {
	case def.Path == definition.StdoutPath:
		return &stream{p}
	case def.Database != nil:
		return &table{dataset: dataset{place: p}}
	case def.Dataset():
		return &dataset{place: p}
	default:
		return &file{p}
	}
}

// Open opens every destination, takes its lease, finishes an interrupted
// commit, and looks at what earlier runs left. The caller closes the set, even
// after an error.
//
// It opens the outputs in the order of their paths, not in that of the definition. The
// run ends if another run of the same pipeline holds an output, because that run is about to
// take the other outputs too. Thus one of two such runs gets all outputs that both want.
func (s *Set) Open(ctx context.Context) error {
	inOrder := slices.SortedStableFunc(slices.Values(s.outputs), func(a, b output) int { return cmp.Compare(a.at().out.Path, b.at().out.Path) })
	for _, out := range inOrder {
		err := out.open(ctx)
		if err == nil {
			out.at().tellOther(ctx)
			out.at().tellOrphans()
			continue
		}
		// Without a RunID the holder has just begun and not written its name yet.
		if held, ok := errors.AsType[*load.HeldError](err); ok && (held.Pipeline == s.job.Def.Name || held.RunID == "") {
			out.at().err, out.at().report.Error = err, err.Error()
			return s.failures()
		}
		if all := s.setAside(ctx, out.at(), err); all != nil {
			return all
		}
	}
	return s.collectColumns(ctx)
}

// Look returns the set of a form's outputs without leases, after it has looked only at datasets
// and tables. Like Open it fails if the definition no longer fits these.
func Look(ctx context.Context, job *Job) (*Set, error) {
	s := New(job)
	for _, out := range s.outputs {
		c, ok := out.(continued)
		if !ok {
			continue
		}
		err := c.look(ctx)
		committing := ""
		if p := out.at(); err == nil && p.table == nil { // then a part may be there before its manifest
			committing, err = load.Pending(ctx, p.dest, "")
		}
		if err == nil && committing == "" {
			err = c.lookAround(ctx)
		}
		if err == nil {
			_, err = c.fits()
		}
		if t, ok := out.(*table); ok && err == nil {
			err = t.fit(ctx)
		}
		if err != nil {
			return s, err
		}
	}
	s.fillLists(ctx)
	return s, nil
}

// Manifests returns the manifests of the live datasets, nil for a dataset that
// no run has committed.
func (s *Set) Manifests() (manifests []*load.Manifest) {
	for _, d := range s.datasets() {
		manifests = append(manifests, d.manifest)
	}
	return manifests
}

// setAside notes that an output failed. It returns nil if the run can go on with
// other outputs. It returns an error if no output is left or the run was stopped.
func (s *Set) setAside(ctx context.Context, p *place, err error) error {
	if ctx.Err() != nil {
		return err // the whole run ends, so this output did not fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := p.err == nil
	if first {
		p.err, p.report.Error = err, err.Error()
	}
	if !slices.ContainsFunc(s.outputs, func(out output) bool { return out.at().err == nil }) {
		return s.failures()
	}
	if first && !errors.Is(err, syscall.EPIPE) { // EPIPE: standard output was closed by its reader
		s.job.Log.LogAttrs(ctx, slog.LevelInfo, "an output failed; the run goes on with the others", slog.String("path", p.Path), slog.String("error", brief(p.Path, err)))
	}
	return nil
}

// brief returns the cause for which an output failed, without the output's path and without
// what to do about it: the command prints the whole error once, at its end.
func brief(path string, err error) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), path+": "), "; ")
	return text
}

// live returns the outputs that have not failed and are not committed yet.
func (s *Set) live() []output {
	return s.those(func(p *place) bool { return p.err == nil && !p.committed })
}

// datasets returns the live outputs that are datasets.
func (s *Set) datasets() (datasets []*dataset) {
	for _, out := range s.live() {
		if c, ok := out.(continued); ok {
			datasets = append(datasets, c.set())
		}
	}
	return datasets
}

// committed returns the outputs that were committed.
func (s *Set) committed() []output { return s.those(func(p *place) bool { return p.committed }) }

func (s *Set) those(are func(*place) bool) (those []output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, out := range s.outputs {
		if are(out.at()) {
			those = append(those, out)
		}
	}
	return those
}

// HasFiles tells whether an output is not a dataset. Such an output holds
// exactly the range that was asked for.
func (s *Set) HasFiles() bool { return len(s.live()) > len(s.datasets()) }

// Guard returns a context that ends once other runs have taken over every output. If only some
// outputs were taken over, Commit sets them aside. The caller calls end.
func (s *Set) Guard(ctx context.Context) (guarded context.Context, end func()) {
	live := s.live()
	places := make([]*place, len(live))
	for i, out := range live {
		places[i] = out.at()
	}
	return guard(ctx, places...)
}

// Close closes all outputs at once, so that a store which does not answer
// delays no other.
func (s *Set) Close(ctx context.Context) error {
	ctx, cancel := load.Lingering(ctx, load.Grace)
	defer cancel()
	failures := make([]error, len(s.outputs))
	var closing sync.WaitGroup
	for i, out := range s.outputs {
		closing.Go(func() { failures[i] = out.at().close(ctx) })
	}
	closing.Wait()
	return errors.Join(failures...)
}

// Reports returns the reports of the outputs, in the order of the definition. Of an output that
// was not committed it tells what the last run left there; if no run left anything, the output is
// there only if it failed.
func (s *Set) Reports() []Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	reports := make([]Report, 0, len(s.outputs))
	for _, out := range s.outputs {
		p := out.at()
		if !p.committed && p.manifest != nil {
			p.report.holds(p.manifest)
			p.report.Untouched = p.err == nil
		}
		if p.committed || p.err != nil || p.manifest != nil {
			reports = append(reports, p.report)
		}
	}
	return reports
}

// Committed tells whether an output was committed.
func (s *Set) Committed() bool { return len(s.committed()) > 0 }

// Bases returns which version of its manifest each output began with, for the outputs that have
// neither failed nor been committed.
func (s *Set) Bases() (bases []checkpoint.Base) {
	for _, out := range s.live() {
		p := out.at()
		b := checkpoint.Base{Path: p.Path, Version: p.base}
		if p.manifest != nil {
			b.RunID = p.manifest.RunID
		}
		bases = append(bases, b)
	}
	return bases
}

// Before returns the manifest that the form's columns are compared with: that of the first
// output that has one. It skips child outputs, because they have the columns of one list only.
// whole means that the run's new manifest will drop columns that this run does not have. m is
// nil if no output has a manifest.
func (s *Set) Before() (m *load.Manifest, whole bool) {
	for _, out := range s.live() {
		p := out.at()
		m := p.manifest
		if m == nil || p.out.Exploded() || m.Form != s.job.Form || m.Source.Account != s.job.Def.Source.Account {
			continue
		}
		return m, !p.out.Dataset() || s.job.Full
	}
	return nil, false
}

// Names returns the names that columns have in the manifest before, which a run with --full keeps
// although it infers its columns anew: a changed heading renames no column. The file of an export
// has the headings of today.
func (s *Set) Names() schemas.Names {
	m, _ := s.Before()
	if m == nil || !s.job.Full || m.Names != s.job.naming() || s.job.Def.File == "" && len(s.datasets()) == 0 {
		return nil
	}
	names := make(schemas.Names, len(m.Schema))
	for _, c := range m.Schema {
		if from, err := schemas.ParseSource(c.From); err == nil {
			names[from] = c.Name
		}
	}
	return names
}

// DropStaged removes the objects that killed runs had staged. runs are their ids. If the
// removal fails, `formetl clean` removes them later.
func (s *Set) DropStaged(ctx context.Context, runs ...string) {
	for _, out := range s.those(func(p *place) bool { return p.err == nil }) {
		p := out.at()
		if p.dest == nil {
			continue
		}
		if err := load.DropStaged(ctx, p.dest, p.Scope, s.job.RunID, runs...); err != nil {
			s.job.Log.LogAttrs(ctx, slog.LevelWarn, "unfinished files of an earlier run could not be removed; they do no harm; once what the error says is mended, `formetl clean` removes them",
				slog.String("path", p.Path), slog.String("error", err.Error()))
		}
	}
}

// Commit stages all outputs, then records their commits, then publishes them.
// It does each step for all outputs at once. If some outputs fail, the others
// go on, and the error is an *OutputsError. It calls recorded once a commit is
// recorded, before it publishes any commit.
func (s *Set) Commit(ctx context.Context, snapshot *reconcile.Snapshot, recorded func(context.Context)) error {
	if err := s.each(ctx, func(_ context.Context, out output) error { return out.at().held() }); err != nil {
		return err
	}
	s.job.At(PointSnapshot)
	if err := s.each(ctx, func(ctx context.Context, out output) error { return out.at().named(out.stage(ctx, snapshot)) }); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.publish(ctx, recorded); err != nil {
		return err
	}
	s.writeCodebooks(ctx, snapshot.Schema)
	s.mu.Lock() // as wherever an output is set aside
	defer s.mu.Unlock()
	return s.failures()
}

// publish records the commits of all outputs and carries them out. After the first record, no
// other run may take over what was read. The requests of an output end when its lease is lost:
// a late request would undo what the run that then holds the lease does.
func (s *Set) publish(ctx context.Context, recorded func(context.Context)) error {
	lingering, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	err := s.each(lingering, func(ctx context.Context, out output) error {
		ctx, end := guard(ctx, out.at())
		defer end()
		return out.record(ctx)
	})
	if slices.ContainsFunc(s.outputs, func(out output) bool { return out.at().publish != nil }) {
		recorded(lingering)
	}
	if err != nil {
		return err
	}
	return s.each(lingering, func(ctx context.Context, out output) error {
		p := out.at()
		ctx, end := guard(ctx, p)
		defer end()
		if err := p.publish(ctx); err != nil {
			return p.named(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		p.report, p.committed = p.staging, true
		return nil
	})
}

// each calls do for all live outputs at once. It sets aside the outputs that
// fail, and returns an error only if the run cannot go on.
func (s *Set) each(ctx context.Context, do func(context.Context, output) error) error {
	live := s.live()
	failures := make([]error, len(live))
	var doing sync.WaitGroup
	for i, out := range live {
		doing.Go(func() { failures[i] = do(ctx, out) })
	}
	doing.Wait()
	for i, out := range live {
		if failures[i] == nil {
			continue
		}
		if err := s.setAside(ctx, out.at(), failures[i]); err != nil {
			return err
		}
	}
	return nil
}

// failures returns an *OutputsError of the outputs that failed, or nil if none failed.
func (s *Set) failures() error {
	var failed []error
	for _, out := range s.outputs {
		if err := out.at().err; err != nil {
			failed = append(failed, err)
		}
	}
	return Failed(failed)
}
