package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
)

// place says where an output lies and what the last run left there. Every kind of
// output has one. The place of standard output has no destination and no manifest.
type place struct {
	encoding
	Location
	dest     load.Destination
	lease    load.Lease      // nil if the destination has no leases
	manifest *load.Manifest  // manifest of the last run, nil if there was none
	base     string          // version of manifest when the run began
	staged   []load.Prepared // objects of this run whose commit is not recorded
	book     codebook.Facts  // facts for the codebook, once the output is staged
}

// at returns the place itself. So every type that embeds a place has the method at of an output.
func (p *place) at() *place { return p }

// placeOf returns the place of an output without opening its destination.
func (j *Job) placeOf(out definition.Output) (*place, error) {
	at, err := Locate(j.Def, out, j.Form, j.RunID)
	if err != nil {
		return nil, err
	}
	format, ok := j.Tables.Format(out.Format)
	if !ok {
		return nil, &definition.UnsupportedError{What: fmt.Sprintf("the format %q", out.Format), Remedy: "choose one of those that `formetl run --help` lists"}
	}
	return &place{encoding: encoding{job: j, out: out, format: format}, Location: at}, nil
}

// open opens the output at this place. It takes the lease of the destination,
// finishes the commit of a run that ended early, and reads what the last run
// left.
func (p *place) open(ctx context.Context) (_ output, err error) {
	if p.out.Path == definition.StdoutPath {
		return &stream{p}, nil
	}
	if p.dest, err = p.job.Tables.Open(ctx, p.Root, p.out); err != nil {
		return nil, err
	}
	if err = p.checkOrdinary(ctx); err != nil {
		return nil, err
	}
	if leaser, ok := p.dest.(load.Leaser); ok {
		if p.lease, err = leaser.Acquire(ctx, p.Scope, p.job.Holder()); err != nil {
			return nil, err
		}
	}
	var out output = &file{p}
	if err = p.lookBack(ctx); err == nil && p.out.Dataset() {
		d := &dataset{place: p}
		out, err = d, d.lookAround(ctx)
	} else if err == nil {
		err = p.tellForeign(ctx)
	}
	if err != nil {
		return nil, errors.Join(p.named(err), p.close(context.WithoutCancel(ctx)))
	}
	p.tellOrphans(ctx)
	return out, nil
}

// checkOrdinary returns an error if a device, a pipe or a link lies where the run writes a
// file. It is asked before the lease, which is a file beside.
func (p *place) checkOrdinary(ctx context.Context) error {
	r, ok := p.dest.(load.Replacer)
	if !ok {
		return nil
	}
	names := []string{p.Manifest, load.SuccessName}
	if !p.out.Dataset() {
		names = []string{p.Scope, p.Manifest, load.FileRejectsName(p.Scope)}
	}
	for _, name := range names {
		if err := r.Replaceable(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// tellForeign warns of a file that this run replaces although no run of formetl wrote it, as
// its manifest would tell. An export asks for that beforehand.
func (p *place) tellForeign(ctx context.Context) error {
	if p.manifest != nil || p.out.NoManifest || p.job.Def.File == "" {
		return nil
	}
	objects, err := p.dest.List(ctx, p.Scope)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(objects, func(o load.Object) bool { return o.Name == p.Scope }) {
		p.job.Log.LogAttrs(ctx, slog.LevelWarn, "this run replaces a file beside which no manifest of formetl lies", slog.String("path", p.Path))
	}
	return nil
}

// Holder returns the run's entry for the leases that it takes.
func (j *Job) Holder() load.Holder {
	host, _ := os.Hostname() // The host is only for people to read.
	return load.Holder{RunID: j.RunID, Pipeline: j.Def.Name, Host: host, PID: os.Getpid(), Since: j.Now().UTC()}
}

// lookBack finishes the commit of a run that ended early, and reads the manifest.
func (p *place) lookBack(ctx context.Context) error {
	r, err := load.Recover(ctx, p.dest, p.Scope, p.hook)
	if err != nil {
		return err
	}
	if r.RunID != "" {
		what := "the commit of an earlier run was finished"
		if !r.Finished {
			what = "the commit of an earlier run could not be finished and was taken back; its results are read again"
		}
		p.job.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("path", p.Path), slog.String("earlier_run", r.RunID))
	}
	p.manifest, p.base, err = ManifestAt(ctx, p.dest, p.Manifest, p.out)
	return err
}

// record records the commit of the staged objects. It returns the function that
// publishes them.
func (p *place) record(ctx context.Context, commit recorder) (publish func(context.Context) error, err error) {
	if err := p.held(); err != nil {
		return nil, err
	}
	recorded, err := commit.Record(ctx, p.dest)
	if givenUp(err) {
		p.staged = nil
	}
	if err != nil {
		return nil, p.named(err)
	}
	return recorded.Publish, nil
}

// recorder is the commit of a dataset or of a single file. Record records it.
type recorder interface {
	Record(ctx context.Context, d load.Destination) (*load.Recorded, error)
}

// close removes staged objects whose commit is not recorded, and releases the
// lease. It removes nothing if another run has taken over the destination.
func (p *place) close(ctx context.Context) (err error) {
	if len(p.staged) > 0 && p.held() == nil {
		err = load.AbortAll(ctx, p.dest, p.staged...)
	}
	if p.lease != nil {
		err = errors.Join(err, p.lease.Release(ctx))
	}
	return err
}

// held returns an error if another run has taken over the lease.
func (p *place) held() error {
	if p.lease == nil {
		return nil
	}
	select {
	case <-p.lease.Lost():
		return &load.HeldError{Path: p.Path}
	default:
		return nil
	}
}

// hook stops a commit at a step once the lease is lost. Another run may already
// be finishing the commit, because the new holder of the lease does that.
func (p *place) hook(step load.Step) error {
	p.job.At(string(step))
	return p.held()
}

// named adds the output's path to an error. It leaves errors of standard output
// alone, because they name the output already.
func (p *place) named(err error) error {
	if err == nil || p.dest == nil {
		return err
	}
	return fmt.Errorf("%s: %w", p.Path, err)
}

// commitGrace is how long a started commit may still take after the run is told
// to stop. Otherwise the next run has to finish it.
const commitGrace = 1500 * time.Millisecond

// Recorded tells whether a failed commit still needs its staged objects. That
// is so if the commit is recorded, because the next run finishes it.
func Recorded(err error) bool {
	c, ok := errors.AsType[*load.CommitError](err)
	return ok && c.Recorded
}

// givenUp tells, after Record returned err, whether the staged objects no longer
// belong to this run. Then the commit is recorded, or another run came first.
func givenUp(err error) bool {
	return err == nil || Recorded(err) || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone)
}

// ManifestAt reads the manifest that an earlier run left of an output, and its
// version. It checks the columns. For a dataset it also checks part names,
// because a run may remove parts. The error is a *load.ManifestError if the
// manifest is damaged. If there is none, it returns nil and no error.
func ManifestAt(ctx context.Context, s load.Store, name string, out definition.Output) (*load.Manifest, string, error) {
	m, version, err := load.ReadManifest(ctx, s, name)
	if errors.Is(err, load.ErrNotExist) {
		return nil, load.NoVersion, nil
	}
	if err != nil {
		return nil, version, err
	}
	if err := checkManifest(m, out); err != nil {
		return nil, load.NoVersion, &load.ManifestError{Name: name, Problem: "it cannot be gone on from", Err: err}
	}
	return m, version, nil
}

func checkManifest(m *load.Manifest, out definition.Output) error {
	if m.Form == "" {
		return errors.New("it names no form")
	}
	if len(m.Schema) == 0 && len(m.Parts) > 0 {
		return errors.New("it has parts and no columns")
	}
	for _, p := range m.Parts {
		if !out.Dataset() {
			break
		}
		if _, err := load.ParsePartName(p.Path); err != nil {
			return err
		}
	}
	columns := m.Schema
	if out.Exploded() && len(columns) > positionAt { // position and element have the same source
		if _, err := checkpoint.DecodeColumns(columns[positionAt : positionAt+1]); err != nil {
			return err
		}
		columns = elements(m).Schema
	}
	_, err := checkpoint.DecodeColumns(columns)
	return err
}

// ColumnsOf returns the columns of a manifest from ManifestAt.
func ColumnsOf(m *load.Manifest) ([]schemas.Column, error) { return checkpoint.DecodeColumns(m.Schema) }

// stream is the output that writes to standard output.
type stream struct{ *place }

// stage encodes nothing yet, because text on standard output cannot be taken
// back. The results are written when the other outputs record their commits.
func (o *stream) stage(_ context.Context, s *reconcile.Snapshot) (*stagedOutput, error) {
	o.snapshot = s
	staged := &stagedOutput{}
	staged.record = func(ctx context.Context) (publish func(context.Context) error, err error) {
		staged.report, err = o.write(ctx)
		return func(context.Context) error { return nil }, err
	}
	return staged, nil
}

// write writes the results to standard output and returns its report.
func (o *stream) write(ctx context.Context) (Report, error) {
	windows := o.snapshot.Own()
	columns, _, err := o.ownColumns(ctx, windows)
	if err != nil {
		return Report{}, err
	}
	counted := &countingWriter{w: stdoutWriter{o.job.Stdout}}
	rows, err := o.encode(ctx, counted, columns, windows)
	return Report{Rows: rows, Parts: 1, Bytes: counted.n}, err
}

// StdoutError reports a failure to write to standard output.
type StdoutError struct{ Err error }

// Error names the cause.
func (e *StdoutError) Error() string { return "cannot write to standard output: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StdoutError) Unwrap() error { return e.Err }

// stdoutWriter wraps errors of its writer in a *StdoutError.
type stdoutWriter struct{ w io.Writer }

// Write writes p to the underlying writer.
func (s stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		err = &StdoutError{Err: err}
	}
	return n, err
}

// countingWriter counts the bytes that were written.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write writes p to the underlying writer and counts the bytes that it accepts.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
