package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The prefixes of object names in the control folder.
const (
	IntentName = "intent" // begins the name of a commit's record
	LeaseName  = "lease"  // begins the name of a lease, which keeps other runs away
)

// recordName returns the object name of a commit's record. scope is "" for a
// dataset and the file's name for a single file.
func recordName(scope string) string { return ScopeName(IntentName, scope) }

// Pending returns the run whose commit is recorded at a scope and not finished, "" for none.
func Pending(ctx context.Context, s Store, scope string) (run string, err error) {
	c, err := readRecord(ctx, s, recordName(scope))
	return c.run(), err
}

// Recovery is what Recover found at a destination.
type Recovery struct {
	RunID string // the run whose commit was under way, "" if there was none
	// Finished tells whether the commit was finished. If not, it was rolled back, because its
	// staged objects are gone or someone else changed the destination. The results of the commit
	// must then be read again.
	Finished bool
}

// Recover finishes a commit that a dead run recorded at d. scope is "" for a dataset and the
// file's name for a single file. The caller must hold the lease, and reads the manifest after
// the call. hook is called before each action of the commit, unless it is nil. With withdraw,
// a commit that the destination refuses for good is taken back, and a record that cannot be
// understood is removed.
func Recover(ctx context.Context, d Destination, scope string, hook Hook, withdraw bool) (Recovery, error) {
	c, err := readRecord(ctx, d, recordName(scope))
	if _, damaged := errors.AsType[*RecordError](err); withdraw && damaged {
		return Recovery{RunID: "unknown"}, d.Delete(ctx, recordName(scope))
	}
	if c == nil {
		return Recovery{}, err
	}
	c.Hook = hook
	r := &committing{Commit: *c, d: d, step: StepCheck, recorded: true}
	if r.manifestData, err = r.Manifest.Encode(); err == nil {
		err = r.at(StepCheck, func() error { return r.checkPrepared(ctx) })
	}
	if err == nil {
		err = r.publish(ctx)
	}
	switch {
	case err == nil:
		return Recovery{RunID: c.RunID, Finished: true}, nil
	case !r.recorded: // the commit was rolled back
		return Recovery{RunID: c.RunID}, nil
	case withdraw && !r.hooked && ctx.Err() == nil && refused(err):
		return r.withdraw(ctx)
	}
	return Recovery{RunID: c.RunID}, r.failed(err)
}

// checkPrepared rolls a recorded commit back if a prepared object is gone or damaged. A commit
// whose manifest is written is not rolled back: only its last steps are left to do.
func (r *committing) checkPrepared(ctx context.Context) error {
	var err error
	if r.visible, err = r.written(ctx); r.visible || err != nil {
		return err
	}
	failures := sideBySide(ctx, r.New, r.d.Check)
	if i := slices.IndexFunc(failures, NotThere); i >= 0 {
		return r.rollBack(ctx, failures[i])
	}
	return first(ctx, failures)
}

// refused tells whether the destination refused a step of a commit, or has a damaged manifest,
// so that it would refuse the step again.
func refused(err error) bool {
	_, damaged := errors.AsType[*ManifestError](err)
	return damaged || errors.Is(err, ErrFailed) || errors.Is(err, ErrUnusable)
}

// withdraw ends a commit that the destination refuses. If the commit's manifest or its file is
// written, the commit stands without the step that was refused; otherwise it is undone. Beside
// a damaged manifest nothing is undone: what that manifest names is unknown, so the commit's
// parts stay as unlisted ones.
func (r *committing) withdraw(ctx context.Context) (Recovery, error) {
	visible, err := r.written(ctx)
	if err == nil && !visible && r.File != "" {
		if visible, err = r.fileHas(ctx, r.New[0].SHA256); visible && !r.Alone {
			err = r.writeManifest(ctx)
		}
	}
	if err == nil && !visible {
		err = r.undo(ctx)
		if _, damaged := errors.AsType[*ManifestError](err); !damaged {
			return Recovery{RunID: r.RunID}, err
		}
		return Recovery{RunID: r.RunID}, r.d.Delete(ctx, recordName(r.File))
	}
	if err == nil && r.File == "" {
		err = r.mark(ctx)
	}
	if err == nil {
		err = r.d.Delete(ctx, recordName(r.File))
	}
	return Recovery{RunID: r.RunID, Finished: true}, err
}

// RecordError means that the record of a commit cannot be understood (exit code 74).
type RecordError struct {
	Path string // path of the record
	Err  error
}

// Error names the record of the commit and what is wrong with it.
func (e *RecordError) Error() string {
	return fmt.Sprintf("cannot read %s, where a run that was stopped noted what is left to do; the file is damaged, or from another version of formetl: %v", e.Path, e.Err)
}

// Unwrap returns the cause, for example an error of the JSON.
func (e *RecordError) Unwrap() error { return e.Err }

// ExitCode is 74: the disk or the store of the output is at fault.
func (e *RecordError) ExitCode() int { return 74 }

// Hint advises to run with --full, which removes the record (see Recover).
func (e *RecordError) Hint() string {
	return "run with --full, which removes this file, reads every result again and replaces the output"
}

// readRecord reads and checks the record of a commit, which is nil if there is none. If
// readRecord does not understand the whole record, the error has a hint for the user. The
// record may be damaged, or written by anyone. So it may name only objects of its own
// destination that a commit writes.
func readRecord(ctx context.Context, s Store, name string) (*Commit, error) {
	data, _, err := s.Get(ctx, name)
	if errors.Is(err, ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := decodeRecord(data)
	if err == nil && name != recordName(c.File) {
		err = fmt.Errorf("it belongs to another output, %q", c.File)
	}
	if err != nil {
		return nil, &RecordError{Path: where(s, name), Err: err}
	}
	return c, nil
}

// decodeRecord decodes the record of a commit, which must have no unknown keys. If they were
// ignored, a damaged record could lead to half a commit that nobody notices.
func decodeRecord(data []byte) (*Commit, error) {
	var c Commit
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := decodeOne(dec, &c); err != nil {
		return nil, err
	}
	if err := CheckRun(c.RunID); err != nil {
		return nil, err
	}
	for _, p := range c.New {
		if _, err := ParsePartName(p.Name); err != nil && c.File == "" {
			return nil, err
		}
	}
	return &c, c.check()
}
