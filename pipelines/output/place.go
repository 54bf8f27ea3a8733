package output

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// place is a destination that a run holds the lease of.
type place struct {
	path  string // for people
	dest  load.Destination
	lease load.Lease // nil where the destination knows none
}

// Holder is how a run names itself in the leases that it takes.
func (j *Job) Holder() load.Holder {
	host, _ := os.Hostname() // It is shown to people only.
	return load.Holder{RunID: j.RunID, Pipeline: j.Def.Name, Host: host, PID: os.Getpid(), Since: j.Now().UTC()}
}

// openPlace opens the destination at root and takes its lease. scope is "" for
// the whole destination, a file's name for that file.
func (j *Job) openPlace(ctx context.Context, def definition.Output, path, root, scope string) (place, error) {
	p := place{path: path}
	var err error
	if p.dest, err = j.Tables.Open(ctx, root, def); err != nil {
		return p, err
	}
	leaser, ok := p.dest.(load.Leaser)
	if !ok {
		return p, nil
	}
	p.lease, err = leaser.Acquire(ctx, scope, j.Holder())
	return p, err
}

// recover finishes the commit that a dead run left recorded.
func (p place) recover(ctx context.Context, j *Job, scope string) error {
	r, err := load.Recover(ctx, p.dest, scope, p.hook(j))
	if err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	if r.RunID != "" {
		what := "the commit of an earlier run was finished"
		if !r.Finished {
			what = "the commit of an earlier run could not be finished and was taken back; its results are read again"
		}
		j.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("path", p.path), slog.String("earlier_run", r.RunID))
	}
	return nil
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

// hook stops a commit that someone else may be finishing by now: what is
// recorded is done by whoever holds the lease.
func (p place) hook(j *Job) load.Hook {
	return func(step load.Step) error {
		j.At(string(step))
		return p.held()
	}
}

// commitGrace is how long a commit that has begun may still take when the run
// is told to stop: a recorded commit is finished by the next run, but one that
// is done now needs none.
const commitGrace = 1500 * time.Millisecond

// Recorded tells whether a failed commit needs its staged objects: it is
// recorded, and the next run finishes it.
func Recorded(err error) bool {
	c, ok := errors.AsType[*load.CommitError](err)
	return ok && c.Recorded
}

// givenUp tells whether the staged objects belong to this run no longer after
// Record returned err: the commit is recorded, or another run came first.
func givenUp(err error) bool {
	return err == nil || Recorded(err) || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone)
}
