package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
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
	if p.lease, err = p.dest.Acquire(ctx, p.Scope, p.job.Holder()); err != nil {
		return nil, err
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
func (p *place) record(ctx context.Context, commit load.Commit) (publish func(context.Context) error, err error) {
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
