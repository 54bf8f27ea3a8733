package load

import (
	"context"
	"fmt"
)

// Step names a step of a commit.
type Step string

// The steps of a commit, in order. StepIntent records the commit at the
// destination. After it Recover can finish the commit, even if the process dies.
const (
	StepCheck     Step = "check"     // the current manifest is compared with the base
	StepBeside    Step = "beside"    // the id sets and dead letters of parts are written
	StepIntent    Step = "intent"    // the commit is recorded at the destination
	StepUnmark    Step = "unmark"    // _SUCCESS, or a file's manifest, is removed
	StepParts     Step = "parts"     // each new part gets its final name
	StepObjects   Step = "objects"   // the dead letters of a file are written
	StepManifest  Step = "manifest"  // the manifest is written
	StepSupersede Step = "supersede" // each superseded part, and what was beside it, is removed
	StepMark      Step = "mark"      // _SUCCESS is written
	StepClose     Step = "close"     // the record of the commit is removed
)

// Hook is called before each action of a commit, always by one goroutine.
// Earlier actions of the same step may still be under way. If Hook returns an
// error, the commit stops as after a crash, and nothing is cleaned up. Callers
// use it to check the lease. Tests use it to make a commit fail.
type Hook func(Step) error

// SmallObject is the dead letters of a file, which a commit writes beside it. If
// Data is nil, the commit removes those of an earlier run.
type SmallObject struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// CommitError is the error of a commit that was not finished.
type CommitError struct {
	RunID string
	Step  Step
	// Recorded tells whether the destination holds the commit's record. If it does,
	// the next run finishes the commit by Recover, so the staged objects must stay.
	Recorded bool
	Err      error
}

// Error names the step, the cause, and what happens next.
func (e *CommitError) Error() string {
	next := "nothing of it is visible; run again"
	if e.Recorded {
		next = "it is recorded, and the next run finishes it"
	}
	return fmt.Sprintf("the commit of run %s stopped at its step %q: %v; %s", e.RunID, e.Step, e.Err, next)
}

// Unwrap gives the cause.
func (e *CommitError) Unwrap() error { return e.Err }

// DatasetCommit is one run's change to a dataset. It is a plain value that
// can be recorded and done again by another process.
type DatasetCommit struct {
	RunID    string   `json:"run_id"`
	Manifest Manifest `json:"manifest"` // the whole new manifest
	// Base is the version of the manifest that was read when the run started,
	// NoVersion if there was none.
	Base       string        `json:"base"`
	New        []Prepared    `json:"new"`              // parts to commit
	Unused     []Prepared    `json:"unused,omitempty"` // prepared objects to abort, because they are not needed
	Superseded []string      `json:"superseded"`       // paths of parts to remove
	Objects    []SmallObject `json:"-"`                // of a file's commit
	// Beside are the id sets and the dead letters of parts. They are written
	// before the commit is recorded and are not part of the record, which keeps
	// it small. Nobody looks for them before the manifest lists their part.
	Beside []PartObject `json:"-"`
	// SupersededBeside are the names of the id sets and dead letters that no part
	// needs any more. One that a part of the new manifest shares is not removed.
	SupersededBeside []string `json:"superseded_beside,omitempty"`
	Hook             Hook     `json:"-"` // nil: none
}

// Do makes the change visible, either whole or not at all:
//
//  1. The current manifest must have the version Base. Otherwise the error
//     wraps ErrConflict, the run's staged parts are aborted, and nothing else
//     changes.
//  2. The id sets and dead letters of parts are written, and then the commit is
//     recorded in the control folder. If another run's record lies there, they are
//     removed again and the error wraps ErrConflict. That run is committing, or
//     it died and Recover must finish its commit.
//  3. _SUCCESS is removed. This tells readers that find parts by a glob that the
//     dataset is changing.
//  4. Parts get their final names. No part ever had these names before.
//  5. The manifest is replaced by compare-and-swap, so its readers see the new
//     run in one step. If someone else changed it, the run's own parts and what
//     is beside them are removed and the error wraps ErrConflict.
//  6. Superseded parts and what was beside them are removed, _SUCCESS is written,
//     and the record is removed.
//
// Any other error after step 2 leaves the record, and the next run finishes the
// commit by Recover. Doing a commit twice is harmless.
func (c DatasetCommit) Do(ctx context.Context, d Destination) error {
	recorded, err := c.Record(ctx, d)
	if err != nil {
		return err
	}
	return recorded.Publish(ctx)
}

// Record does the first two steps of Do. After it another process can finish
// the commit if this one dies. A run with several outputs records all its
// commits before it publishes the first one.
func (c DatasetCommit) Record(ctx context.Context, d Destination) (*Recorded, error) {
	r := committing{d: d, commit: c}
	return r.begin(ctx, intent{Dataset: &c})
}

// Recorded is a commit that is recorded at its destination. If the caller does
// not publish it, Recover does.
type Recorded struct{ commit *committing }

// Publish does the steps of the commit that follow its recording.
func (r *Recorded) Publish(ctx context.Context) error { return r.commit.failed(r.commit.publish(ctx)) }

// FileCommit is one run's replacement of a single file. It is a plain value
// that can be recorded and done again by another process.
type FileCommit struct {
	RunID    string   `json:"run_id"`
	Manifest Manifest `json:"manifest"`
	// Base is the version of the file's manifest that was read when the run
	// started, NoVersion if there was none.
	Base    string        `json:"base"`
	File    Prepared      `json:"file"` // Record sets Replace
	Objects []SmallObject `json:"objects,omitempty"`
	// Alone means that no manifest is written. An older one is removed all the same.
	Alone bool `json:"alone,omitempty"`
	Hook  Hook `json:"-"` // nil: none
}

// Do replaces the file in three steps: it removes the old manifest, replaces
// the file, and writes the new manifest. So a manifest never describes another
// state of the file. A reader of the file gets the old or the new file, always
// whole. A reader of the manifest finds none while a commit is under way, and
// must try again. A reader of both compares the file's SHA-256 with that in the
// manifest.
//
// The steps before these, and the errors, are those of DatasetCommit.Do.
func (c FileCommit) Do(ctx context.Context, d Destination) error {
	recorded, err := c.Record(ctx, d)
	if err != nil {
		return err
	}
	return recorded.Publish(ctx)
}

// Record checks the base and records the commit, as DatasetCommit.Record does.
func (c FileCommit) Record(ctx context.Context, d Destination) (*Recorded, error) {
	c.File.Replace = true
	i := intent{File: &c}
	r := committing{d: d, file: c.File.Name, alone: c.Alone, commit: i.commit()}
	return r.begin(ctx, i)
}

// fits checks that a commit agrees with its manifest m, so that m lists no missing
// object. The commit is of run, publishes prepared and removes the parts superseded.
func (m Manifest) fits(run string, prepared []Prepared, superseded []string) error {
	if m.RunID != run {
		return fmt.Errorf("the manifest is of run %q", m.RunID)
	}
	if m.Parts == nil {
		m.Parts = []Part{} // the manifest of an empty dataset
	}
	if problem := m.problem(); problem != "" {
		return fmt.Errorf("the manifest is inconsistent: %s", problem)
	}
	listed := make(map[string]Part, len(m.Parts))
	for _, p := range m.Parts {
		listed[p.Path] = p
	}
	for _, p := range prepared {
		if part, ok := listed[p.Name]; !ok || part.SHA256 != p.SHA256 || part.Bytes != p.Bytes {
			return fmt.Errorf("the manifest does not list %q as it was prepared", p.Name)
		}
	}
	for _, name := range superseded {
		if err := CheckObjectName(name); err != nil {
			return err
		}
		if _, ok := listed[name]; ok {
			return fmt.Errorf("the manifest lists %s, which the commit removes", name)
		}
	}
	return nil
}
