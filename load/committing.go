package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// committing is the state of a commit that is under way.
type committing struct {
	Commit
	d            Destination
	manifestData []byte // the new manifest's bytes
	step         Step
	hooked       bool // the hook ended the commit as a crash would, so nothing is cleaned up
	recorded     bool
	visible      bool // the manifest is written: only the last steps are left to do
}

// manifest returns the object name of the manifest.
func (r *committing) manifest() string {
	if r.File != "" {
		return FileManifestName(r.File)
	}
	return ManifestName
}

// at calls the commit's hook for a step, and then does one action of that step.
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
			_ = group.Wait() // as in a crash, answers under way are lost
			return stopped
		}
	}
	return group.Wait()
}

// failed wraps an error in a *CommitError with the commit's current step. It returns nil for
// nil.
func (r *committing) failed(err error) error {
	if err == nil {
		return nil
	}
	return &CommitError{RunID: r.RunID, Step: r.step, Recorded: r.recorded, Err: err}
}

// compare checks that no commit is recorded and that the manifest has not changed since the
// run began. It notes which objects the current manifest names and the new one does not.
func (r *committing) compare(ctx context.Context) error {
	if c, err := readRecord(ctx, r.d, recordName(r.File)); err != nil {
		return err
	} else if c != nil {
		return c.busy()
	}
	now, version, err := r.d.Get(ctx, r.manifest())
	if errors.Is(err, ErrNotExist) {
		now, version, err = nil, NoVersion, nil
	}
	if err != nil {
		return err
	}
	if version != r.Base {
		return fmt.Errorf("%s is not as it was when this run began: %w", r.manifest(), ErrConflict)
	}
	if r.File != "" {
		r.Previous = now
		return nil
	}
	// What a damaged manifest names is unknown. Its parts count as unlisted, and the caller has
	// listed them in Commit.Remove.
	before, _ := DecodeManifest(now)
	r.Manifest.Generation = max(NextGeneration(before, nil), NextGeneration(&r.Manifest, nil)) - 1
	names := before.names()
	for _, name := range r.Remove {
		names[name] = true
	}
	needed := r.Manifest.names()
	r.Remove = nil
	for name := range names {
		if !needed[name] && strayKind(name) != "" {
			r.Remove = append(r.Remove, name)
		}
	}
	slices.Sort(r.Remove)
	return nil
}

// busy is the error for another run that wants to commit while this commit is recorded.
func (c *Commit) busy() error {
	return fmt.Errorf("run %s is putting its results in place here, or was stopped while it did, and the next run does the rest: %w", c.RunID, ErrConflict)
}

// writeBeside writes the id set or the dead letters of a part, before any manifest names them.
func (r *committing) writeBeside(ctx context.Context, o PartObject) error {
	data, err := o.Encode()
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return fmt.Errorf("%s would be empty; this is a bug in formetl", o.Name)
	}
	return r.d.Put(ctx, o.Name, data, AnyVersion)
}

// record writes the record of the commit, by which another process can finish it after a
// crash.
func (r *committing) record(ctx context.Context) error {
	data, err := json.Marshal(r.Commit)
	if err != nil {
		return fmt.Errorf("cannot encode the record of the commit: %w", err)
	}
	err = r.d.Put(ctx, recordName(r.File), append(data, '\n'), NoVersion)
	r.recorded = err == nil
	return err
}

// publish does the steps of a commit that follow its recording.
func (r *committing) publish(ctx context.Context) error {
	err := r.steps(ctx)
	if !r.hooked && (errors.Is(err, ErrConflict) || errors.Is(err, ErrStagedGone)) { // it would fail so again
		return r.rollBack(ctx, err)
	}
	return err
}

// steps does the steps of a commit that follow its recording: see the constants of Step.
func (r *committing) steps(ctx context.Context) error {
	if !r.visible {
		if err := r.makeVisible(ctx); err != nil {
			return err
		}
	}
	err := eachAt(ctx, r, StepSupersede, r.Remove, r.d.Delete)
	if err == nil && r.File == "" {
		err = r.at(StepMark, func() error { return r.mark(ctx) })
	}
	if err != nil {
		return err
	}
	return r.at(StepClose, func() error { return r.d.Delete(ctx, recordName(r.File)) })
}

// makeVisible does the steps of a recorded commit up to the writing of the manifest.
func (r *committing) makeVisible(ctx context.Context) error {
	unmarked := SuccessName
	if r.File != "" {
		unmarked = r.manifest()
	}
	if err := r.at(StepUnmark, func() error { return r.d.Delete(ctx, unmarked) }); err != nil {
		return err
	}
	err := eachAt(ctx, r, StepParts, r.New, r.d.Commit)
	if errors.Is(err, ErrConflict) { // an object of a part's name stays, so retries fail
		err = &Error{Kind: ErrUnusable, Op: "write", Path: "the parts", Remedy: "no run wrote that file, so it is no part of the dataset: move it away, then run the same command again", Err: err}
	}
	if err == nil && r.File != "" {
		err = r.at(StepLetters, func() error { return r.writeLetters(ctx) })
	}
	if err == nil && !r.Alone {
		err = r.at(StepManifest, func() error { return r.writeManifest(ctx) })
	}
	return err
}

// written tells whether this commit's manifest is there already. A damaged manifest counts as
// not written.
func (r *committing) written(ctx context.Context) (bool, error) {
	now, _, err := r.d.Get(ctx, r.manifest())
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	m, damaged := DecodeManifest(now)
	return err == nil && damaged == nil && m.RunID == r.RunID, err
}

func (r *committing) writeLetters(ctx context.Context) error {
	if r.Letters == nil {
		return r.d.Delete(ctx, FileRejectsName(r.File))
	}
	return r.d.Put(ctx, FileRejectsName(r.File), r.Letters, AnyVersion)
}

// writeManifest writes the new manifest. For a file it sets no condition,
// because no other run writes the file while the commit is recorded. For a
// dataset it is no conflict if an earlier attempt wrote the same manifest.
func (r *committing) writeManifest(ctx context.Context) error {
	if r.File != "" {
		return r.d.Put(ctx, r.manifest(), r.manifestData, AnyVersion)
	}
	err := r.d.Put(ctx, r.manifest(), r.manifestData, r.Base)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	written, unknown := r.written(ctx)
	switch {
	case unknown != nil:
		return unknown // who wrote the manifest is unknown: the next run decides
	case written:
		return nil
	}
	return err
}

func (r *committing) mark(ctx context.Context) error {
	return r.d.Put(ctx, SuccessName, []byte(r.RunID+"\n"), AnyVersion)
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

// undo removes what the commit staged and made visible, and puts back what tells readers that
// the destination is complete. What it wrote beside its parts stays for Clean. It removes the
// record last.
func (r *committing) undo(ctx context.Context) error {
	current, _, err := ReadManifest(ctx, r.d, r.manifest())
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	if err := AbortAll(ctx, r.d, r.New...); err != nil {
		return err
	}
	if r.File == "" {
		err = r.undoParts(ctx, current)
	} else {
		err = r.undoFile(ctx, current)
	}
	if err != nil {
		return err
	}
	return r.d.Delete(ctx, recordName(r.File))
}

// undoParts removes the parts that this commit made visible. The staged
// objects are gone by now, so Destination.Commit only tells whether the final
// name holds what was prepared. Objects of others stay, and so does what the current
// manifest names.
func (r *committing) undoParts(ctx context.Context, current *Manifest) error {
	names := current.names()
	for _, p := range r.New {
		if names[p.Name] {
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
	if current == nil {
		return nil
	}
	// The first line of _SUCCESS is the run's id. A second line makes the bytes differ from
	// before, so that a reader that listed parts before notices that some of them are gone.
	mark := current.RunID + "\nwithout " + r.RunID + "\n"
	return r.d.Put(ctx, SuccessName, []byte(mark), AnyVersion)
}

// undoFile removes the dead letters of a file that this commit wrote, and puts the manifest
// that it removed there again, if the file is still the one that it describes.
func (r *committing) undoFile(ctx context.Context, current *Manifest) error {
	if r.Letters != nil && (current == nil || current.RunID != r.RunID) {
		if err := r.d.Delete(ctx, FileRejectsName(r.File)); err != nil {
			return err
		}
	}
	before, _ := DecodeManifest(r.Previous) // the earlier manifest; nil if damaged or missing
	if current != nil || before == nil || len(before.Parts) != 1 {
		return nil
	}
	same, err := r.fileHas(ctx, before.Parts[0].SHA256)
	if err != nil || !same {
		return err
	}
	return r.d.Put(ctx, r.manifest(), r.Previous, AnyVersion)
}

// fileHas tells whether the single file that is committed has content with this SHA-256.
func (r *committing) fileHas(ctx context.Context, sha256 string) (bool, error) {
	_, digest, err := Digest(ctx, r.d, r.File)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	return err == nil && digest == sha256, err
}
