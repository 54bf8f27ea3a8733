package load

import (
	"context"
	"errors"
	"slices"
)

// publish does the steps of a commit that follow its recording.
func (r *committing) publish(ctx context.Context) error {
	err := r.steps(ctx)
	if !r.hooked && hopeless(err) {
		return r.rollBack(ctx, err)
	}
	return err
}

// hopeless tells whether a commit that failed would fail in the same way if it were repeated.
func hopeless(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrStagedGone)
}

// refused tells whether the destination refused a step of the commit, so that it would refuse it
// again.
func (r *committing) refused(ctx context.Context, err error) bool {
	_, io := errors.AsType[*IOError](err)
	_, create := errors.AsType[*CreateError](err)
	return (io || create) && r.recorded && !r.hooked && ctx.Err() == nil
}

// withdraw ends a commit that is refused: it is undone, or if its manifest is written, left
// without what it could not remove.
func (r *committing) withdraw(ctx context.Context) (Recovery, error) {
	now, _, err := r.d.Get(ctx, r.manifest())
	switch {
	case err == nil && slices.Equal(now, r.data):
		if r.File == "" {
			err = r.d.Put(ctx, SuccessName, []byte(r.RunID+"\n"), AnyVersion)
		}
		if err == nil {
			err = r.close(ctx)
		}
		return Recovery{RunID: r.RunID, Finished: true}, err
	case err != nil && !errors.Is(err, ErrNotExist):
		return Recovery{}, err
	}
	return Recovery{RunID: r.RunID}, r.undo(ctx)
}

// steps does the steps of publish.
func (r *committing) steps(ctx context.Context) error {
	if err := r.at(StepUnmark, func() error { return r.unmark(ctx) }); err != nil {
		return err
	}
	err := eachAt(ctx, r, StepParts, r.New, r.d.Commit)
	if errors.Is(err, ErrConflict) { // the object stays there, so a retry would fail too
		err = &CreateError{Op: "commit", Path: "the parts", Hint: "no manifest lists it: move it away, and run again", Err: err}
	}
	if err == nil {
		err = r.writeObjects(ctx)
	}
	if err == nil && !r.Alone {
		err = r.at(StepManifest, func() error { return r.writeManifest(ctx) })
	}
	if err == nil {
		err = eachAt(ctx, r, StepSupersede, r.needless(), r.d.Delete)
	}
	if err == nil && r.File == "" {
		mark := func() error { return r.d.Put(ctx, SuccessName, []byte(r.RunID+"\n"), AnyVersion) }
		err = r.at(StepMark, mark)
	}
	if err != nil {
		return err
	}
	return r.at(StepClose, func() error { return r.close(ctx) })
}

// unmark removes _SUCCESS of a dataset, or a file's old manifest. If the
// manifest is that of this commit, done before, it stays.
func (r *committing) unmark(ctx context.Context) error {
	if r.File == "" {
		return r.d.Delete(ctx, SuccessName)
	}
	now, _, err := r.d.Get(ctx, r.manifest())
	if errors.Is(err, ErrNotExist) || err == nil && slices.Equal(now, r.data) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.d.Delete(ctx, r.manifest())
}

// writeManifest writes the new manifest. For a file it sets no condition,
// because no other run writes the file while the commit is recorded. For a
// dataset it is no conflict if an earlier attempt wrote the same manifest.
func (r *committing) writeManifest(ctx context.Context) error {
	if r.File != "" {
		return r.d.Put(ctx, r.manifest(), r.data, AnyVersion)
	}
	err := r.d.Put(ctx, r.manifest(), r.data, r.Base)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	now, _, getErr := r.d.Get(ctx, r.manifest())
	switch {
	case getErr == nil && slices.Equal(now, r.data):
		return nil
	case getErr != nil && !errors.Is(getErr, ErrNotExist):
		return getErr // nobody knows who wrote the manifest: the record stays, and the next run decides
	}
	return err
}

// close ends the commit: it aborts unused objects and removes the record. The record
// goes last, so that Recover repeats whatever an interrupted close left undone.
func (r *committing) close(ctx context.Context) error {
	if err := AbortAll(ctx, r.d, r.Unused...); err != nil {
		return err
	}
	return r.d.Delete(ctx, recordName(r.File))
}

// rollBack undoes a recorded commit that cannot be finished, and returns the
// cause. It can be interrupted and done again: if it fails, the record stays for
// the next run.
func (r *committing) rollBack(ctx context.Context, cause error) error {
	if err := r.undo(ctx); err != nil {
		return errors.Join(cause, err)
	}
	r.recorded = false
	return cause
}

// undo removes everything that the commit made. It removes the record last.
func (r *committing) undo(ctx context.Context) error {
	current, _, err := ReadManifest(ctx, r.d, r.manifest())
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	if err := r.drop(ctx); err != nil {
		return err
	}
	if err := r.removeOwn(ctx, current); err != nil {
		return err
	}
	if err := r.restore(ctx, current); err != nil {
		return err
	}
	return r.d.Delete(ctx, recordName(r.File))
}

// removeOwn removes the objects that this commit made visible. The staged
// objects are gone by now, so Destination.Commit only tells whether the final
// name holds what was prepared. Objects of others stay. A part that the current
// manifest lists stays, and so does what is beside it.
func (r *committing) removeOwn(ctx context.Context, current *Manifest) error {
	used := current.names()
	for _, p := range r.New {
		if p.Replace || used[p.Name] {
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
	if err := r.removeBeside(ctx, used); err != nil {
		return err
	}
	if current != nil && current.RunID == r.RunID {
		return nil
	}
	for _, o := range r.Objects {
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
// _SUCCESS of a dataset, or the previous manifest of a file. current is the
// manifest now, nil for none. The first line of _SUCCESS is the run's id.
func (r *committing) restore(ctx context.Context, current *Manifest) error {
	switch {
	case r.File != "" && current == nil && r.Previous != nil:
		return r.d.Put(ctx, r.manifest(), r.Previous, AnyVersion)
	case r.File != "" || current == nil:
		return nil
	}
	// A second line makes the bytes differ from before. So a reader that listed
	// parts meanwhile notices that some files it saw are gone.
	mark := current.RunID + "\nwithout " + r.RunID + "\n"
	return r.d.Put(ctx, SuccessName, []byte(mark), AnyVersion)
}
