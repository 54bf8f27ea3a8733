package load

import (
	"cmp"
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
	// Finished tells that the commit was finished. Otherwise it was rolled
	// back, because its staged objects are gone or someone else changed the
	// destination. Its results must be read again.
	Finished bool
}

// Recover finishes a commit that a dead run recorded at d. scope is "" for a
// dataset and the file's name for a single file. The caller must hold the
// lease, and reads the manifest after the call.
func Recover(ctx context.Context, d Destination, scope string) (Recovery, error) {
	return RecoverWith(ctx, d, scope, nil)
}

// RecoverWith is Recover with a hook for the commit's steps.
func RecoverWith(ctx context.Context, d Destination, scope string, hook Hook) (Recovery, error) {
	name := intentPath(scope)
	i, err := readIntent(ctx, d, name)
	if errors.Is(err, ErrNotExist) {
		return Recovery{}, nil
	}
	if err != nil {
		return Recovery{}, err
	}
	if i.Dataset != nil {
		i.Dataset.Hook = hook
		err = i.Dataset.Do(ctx, d)
	} else {
		i.File.Hook = hook
		err = i.File.Do(ctx, d)
	}
	var stopped *CommitError
	if errors.As(err, &stopped) && !stopped.Recorded && (errors.Is(err, ErrConflict) || errors.Is(err, ErrStagedGone)) {
		return Recovery{RunID: i.run()}, nil
	}
	if err != nil {
		return Recovery{RunID: i.run()}, err
	}
	return Recovery{RunID: i.run(), Finished: true}, nil
}

// committing is a commit under way.
type committing struct {
	d        Destination
	run      string
	hook     Hook
	prepared []Prepared
	unused   []Prepared
	objects  []SmallObject
	ids      []SmallObject
	ownIDs   []string // names of the id sets of new parts
	manifest string   // name of the manifest
	intent   string   // name of the record
	previous []byte   // manifest before a file's commit
	step     Step
	hooked   bool // the hook ended the commit as a crash would, so nothing is cleaned up
	recorded bool
}

// each does the n actions of a step, several at once, because a store answers
// each request only after a while.
func (r *committing) each(ctx context.Context, step Step, n int, action func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(SideBySide)
	var stopped error
	for i := 0; i < n && stopped == nil; i++ {
		stopped = r.at(step, func() error {
			group.Go(func() error { return action(ctx, i) })
			return nil
		})
	}
	return cmp.Or(stopped, group.Wait())
}

// at does one action of a step.
func (r *committing) at(step Step, action func() error) error {
	r.step = step
	if r.hook != nil {
		if err := r.hook(step); err != nil {
			r.hooked = true
			return err
		}
	}
	return action()
}

// failed wraps an error in a *CommitError with the current step. nil stays nil.
func (r *committing) failed(err error) error {
	if err == nil {
		return nil
	}
	return &CommitError{RunID: r.run, Step: r.step, Recorded: r.recorded, Err: err}
}

// record checks the base and records the commit. If an earlier attempt of the
// same run has recorded it, record checks the prepared objects instead.
func (r *committing) record(ctx context.Context, i intent, base string, data []byte) error {
	resumed := false
	err := r.at(StepCheck, func() error {
		var err error
		if resumed, err = r.resume(ctx); err != nil || resumed {
			return err
		}
		r.previous, err = r.checkBase(ctx, base, data)
		return err
	})
	if err == nil && !resumed {
		err = r.writeIDs(ctx)
	}
	if err == nil && !resumed {
		i.Previous = r.previous
		err = r.putIntent(ctx, i)
	}
	if errors.Is(err, ErrConflict) {
		err = errors.Join(err, r.drop(ctx))
	}
	r.recorded = r.recorded || resumed
	if err == nil && resumed {
		err = r.checkPrepared(ctx, data)
	}
	return r.failed(err)
}

// checkPrepared rolls back a commit that an earlier process recorded if a
// prepared object is gone or damaged. A commit whose manifest is written is not
// rolled back: only its last steps are left to do.
func (r *committing) checkPrepared(ctx context.Context, data []byte) error {
	now, _, err := r.d.Get(ctx, r.manifest)
	if err == nil && slices.Equal(now, data) {
		return nil
	}
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	group, checking := errgroup.WithContext(ctx)
	group.SetLimit(SideBySide)
	for _, p := range r.prepared {
		group.Go(func() error { return r.d.Check(checking, p) })
	}
	err = group.Wait()
	if NotThere(err) {
		return r.rollBack(ctx, fmt.Errorf("%w (%v)", ErrStagedGone, err)) //nolint:errorlint // the class of the second error must not be passed on
	}
	return err
}

// resume tells whether this run's commit is recorded already.
func (r *committing) resume(ctx context.Context) (bool, error) {
	i, err := readIntent(ctx, r.d, r.intent)
	switch {
	case errors.Is(err, ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case i.run() != r.run:
		return false, fmt.Errorf("run %s is committing here, or died and is to be finished by the next run: %w", i.run(), ErrConflict)
	}
	r.previous = i.Previous
	return true, nil
}

// checkBase compares the current manifest with the one that the run began from,
// and gives the current bytes. The commit's own manifest is accepted: the
// commit was done before.
func (r *committing) checkBase(ctx context.Context, base string, data []byte) ([]byte, error) {
	now, version, err := r.d.Get(ctx, r.manifest)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, err
	}
	if err != nil {
		now, version = nil, NoVersion
	}
	if version != base && !slices.Equal(now, data) {
		return nil, fmt.Errorf("%s was written by someone else since the run began: %w", r.manifest, ErrConflict)
	}
	return now, nil
}

// putIntent records the commit. If another record is in its place, the commit's
// id sets are removed again. After any other error the record may have been
// written, so the id sets stay.
func (r *committing) putIntent(ctx context.Context, i intent) error {
	data, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("cannot encode the record of the commit: %w", err)
	}
	put := func() error { return r.d.Put(ctx, r.intent, append(data, '\n'), NoVersion) }
	err = r.at(StepIntent, put)
	if errors.Is(err, ErrConflict) {
		r.withdrawIDs(ctx)
	}
	r.recorded = err == nil
	return err
}

// publishParts gives the prepared objects their final names.
func (r *committing) publishParts(ctx context.Context) error {
	commit := func(ctx context.Context, i int) error { return r.d.Commit(ctx, r.prepared[i]) }
	return r.each(ctx, StepParts, len(r.prepared), commit)
}

// writeObjects writes the small objects, and removes those without data.
func (r *committing) writeObjects(ctx context.Context) error {
	for _, o := range r.objects {
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

// drop aborts the staged objects.
func (r *committing) drop(ctx context.Context) error {
	return AbortAll(ctx, r.d, slices.Concat(r.prepared, r.unused)...)
}

// rollBack undoes a recorded commit that cannot be finished. It removes
// everything that the commit made, and the record last. It can be interrupted
// and done again: if it fails, the record stays for the next run.
func (r *committing) rollBack(ctx context.Context, cause error) error {
	now, _, err := r.d.Get(ctx, r.manifest)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return errors.Join(cause, err)
	}
	var current *Manifest
	if err == nil {
		if current, err = DecodeManifest(now); err != nil {
			return errors.Join(cause, err)
		}
	}
	if err := r.drop(ctx); err != nil {
		return errors.Join(cause, err)
	}
	if err := r.removeOwn(ctx, current); err != nil {
		return errors.Join(cause, err)
	}
	if err := r.restore(ctx, current); err != nil {
		return errors.Join(cause, err)
	}
	if err := r.d.Delete(ctx, r.intent); err != nil {
		return errors.Join(cause, err)
	}
	r.recorded = false
	return cause
}

// removeOwn removes the objects that this commit made visible. The staged
// objects are gone by now, so Commit succeeds only if the final name holds what
// was prepared. That protects objects of others. A part that the current
// manifest lists stays, and so does its id set.
func (r *committing) removeOwn(ctx context.Context, current *Manifest) error {
	kept := map[string]bool{}
	if current != nil {
		kept = paths(current.Parts)
	}
	for _, p := range r.prepared {
		if p.Replace || kept[p.Name] {
			continue
		}
		err := r.d.Commit(ctx, p)
		if errors.Is(err, ErrConflict) || NotThere(err) {
			continue
		}
		if err == nil {
			err = r.d.Delete(ctx, p.Name)
		}
		if err != nil {
			return err
		}
	}
	used := map[string]bool{}
	current.idsOf(used)
	if err := r.removeIDs(ctx, used); err != nil {
		return err
	}
	if current != nil && current.RunID == r.run {
		return nil
	}
	for _, o := range r.objects {
		if o.Data == nil {
			continue
		}
		if err := r.d.Delete(ctx, o.Name); err != nil {
			return err
		}
	}
	return nil
}

// restore puts back what tells readers that the destination is complete:
// _SUCCESS of a dataset, or the previous manifest of a file. The first line of
// _SUCCESS is the run's id.
func (r *committing) restore(ctx context.Context, current *Manifest) error {
	if r.manifest != ManifestName {
		if current != nil || r.previous == nil {
			return nil
		}
		return r.d.Put(ctx, r.manifest, r.previous, AnyVersion)
	}
	if current == nil {
		return nil
	}
	// A second line makes the bytes differ from before. So a reader that
	// globbed meanwhile notices that some files it saw are gone.
	mark := current.RunID + "\nwithout " + r.run + "\n"
	return r.d.Put(ctx, SuccessName, []byte(mark), AnyVersion)
}
