package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Recovery is what Recover found.
type Recovery struct {
	RunID string // of the commit that was under way, "" if there was none
	// Finished tells whether the commit was finished. If not, it was rolled
	// back, because its staged objects are gone or someone else changed the
	// destination. Its results must then be read again.
	Finished bool
}

// Recover finishes a commit that a dead run recorded at d. scope is "" for a
// dataset and the file's name for a single file. The caller must hold the
// lease, and reads the manifest after the call. hook is called before each
// action of the commit, unless it is nil. With withdraw, a commit that the destination refuses for
// good is taken back, and a record that cannot be understood is removed.
func Recover(ctx context.Context, d Destination, scope string, hook Hook, withdraw bool) (Recovery, error) {
	c, err := readRecord(ctx, d, recordName(scope))
	if withdraw && errors.Is(err, errRecord) {
		return Recovery{RunID: "unknown"}, d.Delete(ctx, recordName(scope))
	}
	if c == nil {
		return Recovery{}, err
	}
	c.Hook = hook
	recorded, err := c.Record(ctx, d)
	if err == nil {
		err = recorded.Publish(ctx)
	}
	failed, is := errors.AsType[*CommitError](err)
	switch {
	case is && !failed.Recorded && hopeless(err):
		return Recovery{RunID: c.RunID}, nil
	case is && recorded != nil && withdraw && recorded.commit.refused(ctx, err):
		return recorded.commit.withdraw(ctx)
	}
	return Recovery{RunID: c.RunID, Finished: err == nil}, err
}

// committing is a commit under way.
type committing struct {
	Commit
	d        Destination
	data     []byte // the new manifest's bytes
	step     Step
	hooked   bool // the hook ended the commit as a crash would, so nothing is cleaned up
	recorded bool
}

// manifest returns the object name of the manifest.
func (r *committing) manifest() string {
	if r.File != "" {
		return FileManifestName(r.File)
	}
	return ManifestName
}

// eachAt does the action of a step for each item. It does several at once,
// because each request to a store takes time.
func eachAt[T any](ctx context.Context, r *committing, step Step, items []T, action func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(SideBySide)
	for _, item := range items {
		stopped := r.at(step, func() error {
			group.Go(func() error { return action(ctx, item) })
			return nil
		})
		if stopped != nil {
			_ = group.Wait() // a crash would lose the answers too
			return stopped
		}
	}
	return group.Wait()
}

// at calls the hook, and then does one action of a step.
func (r *committing) at(step Step, action func() error) error {
	r.step = step
	if r.Hook != nil {
		if err := r.Hook(step); err != nil {
			r.hooked = true
			return err
		}
	}
	return action()
}

// failed wraps an error in a *CommitError with the current step. It returns nil for nil.
func (r *committing) failed(err error) error {
	if err == nil {
		return nil
	}
	return &CommitError{RunID: r.RunID, Step: r.step, Recorded: r.recorded, Err: err}
}

// record checks the base and records the commit. If an earlier attempt of the
// same run has recorded it, record checks the prepared objects instead.
func (r *committing) record(ctx context.Context) error {
	err := r.at(StepCheck, func() error {
		if err := r.resume(ctx); err != nil || r.recorded {
			return err
		}
		return r.checkBase(ctx)
	})
	if r.recorded {
		return r.checkPrepared(ctx)
	}
	if err == nil {
		err = r.writeBeside(ctx)
	}
	if err == nil {
		err = r.putRecord(ctx)
	}
	if errors.Is(err, ErrConflict) {
		err = errors.Join(err, r.drop(ctx))
	}
	return err
}

// checkPrepared rolls back a commit that an earlier process recorded if a
// prepared object is gone or damaged. A commit whose manifest is written is not
// rolled back: only its last steps are left to do.
func (r *committing) checkPrepared(ctx context.Context) error {
	now, _, err := r.d.Get(ctx, r.manifest())
	if err == nil && slices.Equal(now, r.data) {
		return nil
	}
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	err = each(ctx, r.New, r.d.Check)
	if NotThere(err) {
		return r.rollBack(ctx, fmt.Errorf("%w (%v)", ErrStagedGone, err)) //nolint:errorlint // the class of the second error must not be passed on
	}
	return err
}

// resume sets r.recorded if this run's commit is recorded already. It fails if
// another run's is.
func (r *committing) resume(ctx context.Context) error {
	c, err := readRecord(ctx, r.d, recordName(r.File))
	switch {
	case c == nil:
		return err
	case c.RunID != r.RunID:
		return c.busy()
	}
	r.Previous, r.recorded = c.Previous, true
	return nil
}

// busy is the error of whoever comes while the commit is recorded.
func (c *Commit) busy() error {
	return fmt.Errorf("run %s is committing here, or died and is to be finished by the next run: %w", c.RunID, ErrConflict)
}

// checkBase checks that the manifest has not changed since the run began, and
// keeps its bytes. It also accepts the commit's own manifest, which an earlier
// attempt wrote.
func (r *committing) checkBase(ctx context.Context) error {
	now, version, err := r.d.Get(ctx, r.manifest())
	if errors.Is(err, ErrNotExist) {
		now, version, err = nil, NoVersion, nil
	}
	if err != nil {
		return err
	}
	if version != r.Base && !slices.Equal(now, r.data) {
		return fmt.Errorf("%s was written by someone else since the run began: %w", r.manifest(), ErrConflict)
	}
	if r.File != "" {
		r.Previous = now
	}
	return nil
}

// putRecord records the commit. If another record is there already, the
// commit's id sets and dead letters are removed again. After any other error the
// record may have been written, so they stay.
func (r *committing) putRecord(ctx context.Context) error {
	data, err := json.Marshal(r.Commit)
	if err != nil {
		return fmt.Errorf("cannot encode the record of the commit: %w", err)
	}
	put := func() error { return r.d.Put(ctx, recordName(r.File), append(data, '\n'), NoVersion) }
	err = r.at(StepIntent, put)
	if errors.Is(err, ErrConflict) {
		r.withdrawBeside(ctx)
	}
	r.recorded = err == nil
	return err
}

// writeObjects writes the small objects, and removes those without data.
func (r *committing) writeObjects(ctx context.Context) error {
	for _, o := range r.Objects {
		write := func() error { return r.d.Put(ctx, o.Name, o.Data, AnyVersion) }
		if o.Data == nil {
			write = func() error { return r.d.Delete(ctx, o.Name) }
		}
		if err := r.at(StepObjects, write); err != nil {
			return err
		}
	}
	return nil
}

// drop aborts the staged objects of the commit.
func (r *committing) drop(ctx context.Context) error {
	return AbortAll(ctx, r.d, slices.Concat(r.New, r.Unused)...)
}
