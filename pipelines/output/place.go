package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/codebook"
	"github.com/formetl/formetl/pipelines/definition"
)

// place is where an output lies and what the last run left there. Every kind of
// output has one; that of standard output has no destination and no manifest.
type place struct {
	encoding
	Location
	dest     load.Destination
	lease    load.Lease      // nil where the destination knows no leases
	manifest *load.Manifest  // of the last run, nil if there was none
	base     string          // version of that manifest
	staged   []load.Prepared // objects of this run whose commit is not recorded
	book     codebook.Facts  // for the codebook, once the output is staged
}

// at makes every type that embeds a place an output.
func (p *place) at() *place { return p }

// placeOf gives the place of an output without opening its destination.
func (j *Job) placeOf(out definition.Output) (*place, error) {
	at, err := Locate(j.Def, out, j.Form, j.RunID)
	if err != nil {
		return nil, err
	}
	format, ok := j.Tables.format(out.Format)
	if !ok {
		return nil, &definition.UnsupportedError{What: fmt.Sprintf("the format %q", out.Format), Remedy: "choose one of those that `formetl run --help` lists"}
	}
	return &place{encoding: encoding{job: j, out: out, format: format}, Location: at}, nil
}

// open opens the output that lies there. It takes the lease of the destination,
// finishes the commit of a run that ended early, and reads what the last run
// left.
func (p *place) open(ctx context.Context) (_ output, err error) {
	if p.out.Path == definition.StdoutPath {
		return &stream{p}, nil
	}
	if p.dest, err = p.job.Tables.Open(ctx, p.Root, p.out); err != nil {
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
	}
	if err != nil {
		return nil, errors.Join(p.named(err), p.close(context.WithoutCancel(ctx)))
	}
	p.tellOrphans(ctx)
	return out, nil
}

// Holder is how a run names itself in the leases that it takes.
func (j *Job) Holder() load.Holder {
	host, _ := os.Hostname() // It is shown to people only.
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

// record records the commit of what was staged, and gives the function that
// publishes it.
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

// recorder is the commit of a dataset or of a file.
type recorder interface {
	Record(ctx context.Context, d load.Destination) (*load.Recorded, error)
}

// close drops what was staged and not recorded, and gives the lease back. A
// destination that another run has taken over is left alone.
func (p *place) close(ctx context.Context) (err error) {
	if len(p.staged) > 0 && p.held() == nil {
		err = load.AbortAll(ctx, p.dest, p.staged...)
	}
	if p.lease != nil {
		err = errors.Join(err, p.lease.Release(ctx))
	}
	return err
}

// held fails if another run has taken the lease over.
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

// hook stops a commit once the lease is lost. Another run may be finishing it by
// then, because the holder of the lease does what is recorded.
func (p *place) hook(step load.Step) error {
	p.job.At(string(step))
	return p.held()
}

// named names the output of an error. Errors of standard output name it
// themselves.
func (p *place) named(err error) error {
	if err == nil || p.dest == nil {
		return err
	}
	return fmt.Errorf("%s: %w", p.Path, err)
}

// commitGrace is how long a commit that has begun may still take when the run
// is told to stop. The next run would finish it, but then has more to do.
const commitGrace = 1500 * time.Millisecond

// Recorded tells whether a failed commit needs its staged objects: it is
// recorded, and the next run finishes it.
func Recorded(err error) bool {
	c, ok := errors.AsType[*load.CommitError](err)
	return ok && c.Recorded
}

// givenUp tells whether the staged objects no longer belong to this run after
// Record returned err: the commit is recorded, or another run came first.
func givenUp(err error) bool {
	return err == nil || Recorded(err) || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone)
}
