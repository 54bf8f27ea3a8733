package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// Location says where an output of a form lies.
type Location struct {
	Path     string // full path of the output, without placeholders, for people
	Root     string // root of the output's destination
	Scope    string // scope of the output's lease: "" for a dataset, the file's name for a file
	Manifest string // name of the output's manifest at the destination
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

// place says where an output lies and what the last run left there. Every kind of
// output has one. The place of standard output has no destination and no manifest.
type place struct {
	encoding
	Location
	dest       load.Destination // nil for a table
	table      load.Table       // nil for other outputs
	lease      load.Lease       // nil if the destination has no leases
	recovered  load.Recovery    // the commit that was finished when the output was opened
	manifest   *load.Manifest   // manifest of the last run, nil if there was none
	base       string           // version of manifest when the run began
	generation int              // generation in the names of a dataset's new parts

	prepared []load.Prepared             // objects of this run whose commit is not recorded
	commit   load.Commit                 // set once the output is staged
	publish  func(context.Context) error // carries the commit out; nil before it is recorded
	staging  Report                      // the report once the commit is published
	book     codebookFacts               // facts for the codebook, once the output is staged

	report    Report
	committed bool
	err       error // the first failure of the output, for which it was set aside
}

func newPlace(job *Job, def definition.Output) *place {
	return &place{
		encoding: encoding{job: job, out: def}, Location: Location{Path: def.Path},
		report: Report{Path: def.Path, Format: def.Format, Explode: def.Explode.String()},
	}
}

// at returns the place itself. So every type that embeds a place has the method `at` that the
// interface output needs.
func (p *place) at() *place { return p }

// locate finds where the output lies, its format, and the destination or table to write to.
func (p *place) locate(ctx context.Context) error {
	at, err := Locate(p.job.Def, p.out, p.job.Form, p.job.RunID)
	if err != nil {
		return err
	}
	p.Location, p.report.Path = at, at.Path
	var ok bool
	if p.format, ok = p.job.BuiltIn.Format(p.out.Format); !ok {
		return definition.Unsupported(fmt.Sprintf("the format %q", p.out.Format), "choose another format")
	}
	switch {
	case p.out.Database != nil:
		p.table, err = p.job.BuiltIn.OpenTable(p.Path, p.out.Database)
	case p.out.Path != definition.StdoutPath:
		p.dest, err = p.job.BuiltIn.Open(ctx, p.Root, p.out)
	}
	return err
}

// look reads the manifest that an earlier run left at the output. It takes no lease.
func (p *place) look(ctx context.Context) (err error) {
	if err = p.locate(ctx); err != nil {
		return err
	}
	p.manifest, p.base, err = ManifestAt(ctx, p.dest, p.Manifest, p.out)
	return p.named(Replaceable(p.job.Def, err))
}

// openAndLook opens the destination, takes its lease, finishes the commit of a run that
// ended early, and reads the manifest. Then it calls lookAround, which looks at other objects
// at the destination. If any of that fails, the lease is given back at once.
func (p *place) openAndLook(ctx context.Context, lookAround func(context.Context) error) (err error) {
	if err = p.locate(ctx); err != nil {
		return err
	}
	if err = p.checkOrdinary(ctx); err != nil {
		return err
	}
	if p.lease, err = p.dest.Acquire(ctx, p.Scope, p.job.Holder()); err != nil {
		return err
	}
	if err = p.lookBack(ctx); err == nil {
		err = lookAround(ctx)
	}
	if err != nil {
		return errors.Join(p.named(err), p.close(context.WithoutCancel(ctx)))
	}
	return nil
}

// tellOther warns of an output that another pipeline wrote last. Two definitions with one
// path replace each other's rows for ever, and both succeed.
func (p *place) tellOther(ctx context.Context) {
	m, is := p.manifest, p.job.Def.Name
	if m == nil || p.job.Def.File == "" || m.Pipeline == is {
		return
	}
	p.job.Log.LogAttrs(ctx, slog.LevelWarn, "another pipeline wrote this output last, and this run writes over it; give each pipeline its own path, unless you renamed the pipeline",
		slog.String("path", p.Path), slog.String("was", m.Pipeline), slog.String("is", is))
}

// checkOrdinary returns an error if a device, a pipe or a link lies where the run writes a
// file. It is called before the lease is taken, because the lease is a file beside these.
func (p *place) checkOrdinary(ctx context.Context) error {
	names := []string{p.Manifest, load.SuccessName}
	if !p.out.Dataset() {
		names = []string{p.Scope, p.Manifest, load.FileRejectsName(p.Scope)}
	}
	for _, name := range names {
		if _, err := p.dest.Stat(ctx, name); err != nil && !errors.Is(err, load.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Holder returns the run's entry for the leases that it takes.
func (j *Job) Holder() load.Holder {
	host, _ := os.Hostname() // The host is only for people to read.
	return load.Holder{RunID: j.RunID, Pipeline: j.Def.Name, Host: host, PID: os.Getpid(), Since: j.Now().UTC()}
}

// lookBack finishes the commit of a run that ended early, and reads the manifest.
func (p *place) lookBack(ctx context.Context) (err error) {
	if p.recovered, err = load.Recover(ctx, p.dest, p.Scope, p.hook, p.job.Full); err != nil {
		return err
	}
	if p.recovered.RunID != "" {
		what := "an earlier run was stopped while it put its results in place; this run has finished that"
		if !p.recovered.Finished {
			what = "an earlier run was stopped while it put its results in place; that was undone, and its results are read again"
		}
		p.job.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("path", p.Path), slog.String("earlier_run", p.recovered.RunID))
	}
	p.manifest, p.base, err = ManifestAt(ctx, p.dest, p.Manifest, p.out)
	if _, damaged := errors.AsType[*load.ManifestError](err); damaged && p.job.Full {
		return nil // a full run replaces the damaged manifest
	}
	return Replaceable(p.job.Def, err)
}

// Replaceable returns the error of an output. If its manifest is damaged, the error's hint is the
// command that replaces the output.
func Replaceable(def *definition.Definition, err error) error {
	if _, damaged := errors.AsType[*load.ManifestError](err); !damaged {
		return err
	}
	replace := "`" + def.Command("run", "--full") + "`"
	if def.File == "" {
		replace = "--fresh"
	}
	return &definition.Fault{Text: err.Error(), Cure: "restore the output and this file from the same backup; or read everything again with " + replace + " (results that the service has deleted are then gone); if another program wrote the file, choose another path", Err: err}
}

// record records the commit of the staged objects.
func (p *place) record(ctx context.Context) error {
	if err := p.held(); err != nil {
		return err
	}
	var err error
	if p.publish, err = p.commit.Record(ctx, p.dest); err == nil {
		p.prepared = nil // now close must not remove them: a later run may finish the commit
	}
	return p.named(err)
}

// close removes staged objects whose commit is not recorded, and releases the
// lease. It removes nothing if another run has taken over the destination.
func (p *place) close(ctx context.Context) (err error) {
	if len(p.prepared) > 0 && p.held() == nil {
		err = load.AbortAll(ctx, p.dest, p.prepared...)
	}
	if p.lease != nil {
		err = errors.Join(err, p.lease.Release(ctx))
	}
	p.prepared, p.lease = nil, nil
	return err
}

// held returns an error if another run has taken over the lease.
func (p *place) held() error {
	if p.lease == nil {
		return nil
	}
	return load.StillHeld(p.lease, p.Path)
}

// guard returns a context that ends once other runs have taken over all of these outputs. The
// caller calls end.
func guard(ctx context.Context, places ...*place) (guarded context.Context, end func()) {
	guarded, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		var lost []error
		for _, p := range places {
			if p.lease == nil {
				return
			}
			select {
			case <-p.lease.Lost():
				lost = append(lost, &load.HeldError{Path: p.Path})
			case <-guarded.Done():
				return
			}
		}
		cancel(Failed(lost))
	})
	return guarded, func() {
		cancel(nil)
		watching.Wait()
	}
}

// hook stops a commit at a step once the lease is lost. The run that has the lease then
// may already be finishing the commit.
func (p *place) hook(step load.Step) error {
	p.job.At(string(step))
	return p.held()
}

// named adds the output's path to an error that does not name it.
func (p *place) named(err error) error {
	if err == nil || p.dest == nil || strings.Contains(err.Error(), p.Path) {
		return err
	}
	return fmt.Errorf("%s: %w", p.Path, err)
}

// commitGrace is how long a started commit may still take after the run is told
// to stop. A commit that takes longer is finished by the next run.
const commitGrace = 1500 * time.Millisecond

// Recorded tells whether a failed commit still needs its staged objects. That
// is so if the commit is recorded, because the next run finishes it.
func Recorded(err error) bool {
	c, ok := errors.AsType[*load.CommitError](err)
	return ok && c.Recorded
}

// Manifest returns the manifest that an earlier run left at an output, or nil
// if there is no manifest. It takes no lease.
func (j *Job) Manifest(ctx context.Context, out definition.Output) (*load.Manifest, error) {
	o := newOutput(j, out)
	err := o.look(ctx)
	return o.at().manifest, err
}

// ManifestAt reads the manifest that an earlier run left of an output, and its
// version. It checks the columns. For a dataset it also checks part names,
// because a run may remove parts. The error is a *load.ManifestError if the
// manifest is damaged. If there is no manifest, it returns nil and no error.
func ManifestAt(ctx context.Context, s load.Store, name string, out definition.Output) (*load.Manifest, string, error) {
	m, version, err := load.ReadManifest(ctx, s, name)
	if errors.Is(err, load.ErrNotExist) {
		return nil, load.NoVersion, nil
	}
	if err != nil {
		return nil, version, err
	}
	if err := checkManifest(m, out); err != nil {
		return nil, version, &load.ManifestError{Name: name, Problem: "a run cannot go on from it", Err: err}
	}
	return m, version, nil
}

func checkManifest(m *load.Manifest, out definition.Output) error {
	if m.Form == "" {
		return errors.New("it does not name its form")
	}
	if len(m.Schema) == 0 && len(m.Parts) > 0 {
		return errors.New("it has parts but no columns")
	}
	for _, p := range m.Parts {
		if !out.Dataset() || out.Database != nil {
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
