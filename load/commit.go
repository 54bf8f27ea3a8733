package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Step names a step of a commit.
type Step string

// The steps of a commit, in order. StepIntent records the commit at the
// destination. After it Recover can finish the commit, even if the process dies.
const (
	StepCheck     Step = "check"     // the current manifest is compared with the commit's base
	StepBeside    Step = "beside"    // the id sets and dead letters of parts are written
	StepIntent    Step = "intent"    // the commit is recorded at the destination
	StepUnmark    Step = "unmark"    // _SUCCESS, or a file's manifest, is removed
	StepParts     Step = "parts"     // each new part gets its final name
	StepLetters   Step = "letters"   // the dead letters of a file are written, or older ones removed
	StepManifest  Step = "manifest"  // the manifest is written
	StepSupersede Step = "supersede" // what the manifest no longer names is removed
	StepMark      Step = "mark"      // _SUCCESS is written
	StepClose     Step = "close"     // the record of the commit is removed
)

// Hook is called before each action of a commit, always by one goroutine.
// Earlier actions of the same step may still be under way. If Hook returns an
// error, the commit stops as after a crash, and nothing is cleaned up. Callers
// use it to check the lease. Tests use it to make a commit fail.
type Hook func(Step) error

// CommitError is the error of a commit that was not finished.
type CommitError struct {
	RunID string
	Step  Step
	// Recorded tells whether the destination holds the commit's record. If it does,
	// the next run finishes the commit by Recover, so the staged objects must stay.
	Recorded bool
	Err      error
}

// Error names the step that failed, the cause, and what happens next.
func (e *CommitError) Error() string {
	next := "nothing of the run is in the output"
	if e.Recorded {
		next = "the next run does the rest"
	}
	return fmt.Sprintf("run %s could not put its results in place (step %q): %v; %s", e.RunID, e.Step, e.Err, next)
}

// Unwrap returns the cause of the failed commit.
func (e *CommitError) Unwrap() error { return e.Err }

// Commit is one run's change to a dataset or to a single file. It is a plain value that is
// recorded unchanged, so that another process can do the commit again.
type Commit struct {
	RunID    string   `json:"run_id"`
	File     string   `json:"file,omitempty"` // the name of the single file, "" for a dataset
	Manifest Manifest `json:"manifest"`       // the whole new manifest
	// Base is the version of the manifest that was read when the run started,
	// NoVersion if there was none.
	Base string `json:"base"`
	// New are the parts to commit. A file's commit has one, which replaces the file.
	New []Prepared `json:"new"`
	// Remove are the names of a dataset's parts, id sets and dead letters to remove. Record
	// adds those that the manifest named until now.
	Remove []string `json:"remove,omitempty"`
	// Beside are the id sets and the dead letters of parts. They are written before the
	// commit is recorded and are not part of the record, which keeps it small. Nobody looks
	// for them before the manifest lists their part. Those of a commit that is not finished
	// stay until Clean.
	Beside []PartObject `json:"-"`
	// Letters are the dead letters of a file. If there are none, those of an earlier run
	// are removed.
	Letters []byte `json:"letters,omitempty"`
	// Alone means that a file gets no manifest. An older one is removed all the same.
	Alone bool `json:"alone,omitempty"`
	// Previous is the manifest that a file's commit removes. Record sets it, and a commit
	// that is taken back puts it there again.
	Previous []byte `json:"previous,omitempty"`
	Hook     Hook   `json:"-"` // called before each action of the commit; nil for none
}

// PartObject is an id set, or dead letters, that a commit writes. Encode returns the object's
// bytes. It is called just before they are written, because all id sets together take two
// bytes for each result.
type PartObject struct {
	Name   string
	Encode func() ([]byte, error)
}

// Do makes the commit's change visible, either whole or not at all:
//
//  1. The current manifest must have the version Base. Otherwise the error
//     wraps ErrConflict, and nothing changes.
//  2. The id sets and dead letters of parts are written, and then the commit is
//     recorded in the control folder. If another run's record lies there, the error
//     wraps ErrConflict. That run is committing, or it died and Recover must finish
//     its commit.
//  3. _SUCCESS is removed. This tells readers that find parts by a glob that the
//     dataset is changing.
//  4. Parts get their final names. No part ever had these names before.
//  5. The manifest is replaced by compare-and-swap, so its readers see the new
//     run in one step. If someone else changed it, the run's own parts are removed
//     and the error wraps ErrConflict.
//  6. What the manifest no longer names is removed, _SUCCESS is written,
//     and the record is removed.
//
// Any other error after step 2 leaves the record, and the next run finishes the commit by
// Recover. Steps that are done again are harmless. After an error in step 1 or 2, the caller
// aborts the staged objects.
//
// A file has no _SUCCESS, and its manifest never describes another state of the file:
// step 3 removes the manifest, step 4 replaces the file, and step 5 writes the new manifest
// whatever lies there. A reader of the file gets the old or the new one, always whole. A
// reader of the manifest finds none while a commit is under way, and must try again. A
// reader of both compares the file's SHA-256 with that in the manifest.
func (c Commit) Do(ctx context.Context, d Destination) error {
	publish, err := c.Record(ctx, d)
	if err != nil {
		return err
	}
	return publish(ctx)
}

// Record does the first two steps of Do, and publish does the others. After Record another
// process can finish the commit if this process dies. A run with several outputs records all
// its commits before it publishes the first one.
func (c Commit) Record(ctx context.Context, d Destination) (publish func(context.Context) error, err error) {
	c.New = slices.Clone(c.New)
	for i := range c.New {
		c.New[i].Replace = c.File != ""
	}
	r := &committing{Commit: c, d: d, step: StepCheck}
	err = r.check()
	if err == nil {
		err = r.at(StepCheck, func() error { return r.compare(ctx) })
	}
	if err == nil {
		r.manifestData, err = r.Manifest.Encode()
	}
	if err == nil {
		err = eachAt(ctx, r, StepBeside, r.Beside, r.writeBeside)
	}
	if err == nil {
		err = r.at(StepIntent, func() error { return r.record(ctx) })
	}
	if err != nil {
		return nil, r.failed(err)
	}
	return func(ctx context.Context) error { return r.failed(r.publish(ctx)) }, nil
}

// check checks that the commit agrees with its manifest, so that the manifest lists no missing
// object, and that the commit names only objects that a commit of its kind writes and removes.
func (c *Commit) check() error {
	m := c.Manifest
	if m.RunID != c.RunID {
		return fmt.Errorf("the manifest is from run %q", m.RunID)
	}
	if m.Parts == nil {
		m.Parts = []Part{} // as in the manifest of an empty dataset
	}
	if problem := m.problem(); problem != "" {
		return fmt.Errorf("the manifest is inconsistent: %s", problem)
	}
	ofFiles, ofDatasets := c.Alone || c.Letters != nil, len(c.Remove)+len(c.Beside) > 0
	if c.File == "" && ofFiles || c.File != "" && (ofDatasets || len(c.New) != 1) {
		return errors.New("it mixes a commit of a file and one of a dataset")
	}
	listed := make(map[string]Part, len(m.Parts))
	for _, p := range m.Parts {
		listed[p.Path] = p
	}
	for _, p := range c.New {
		if part, ok := listed[p.Name]; !ok || part.SHA256 != p.SHA256 || part.Bytes != p.Bytes {
			return fmt.Errorf("the manifest does not list %q, or with another size or checksum", p.Name)
		}
		if p.Replace != (c.File != "") || c.File != "" && p.Name != c.File {
			return fmt.Errorf("this commit does not write %q", p.Name)
		}
	}
	names := m.names()
	for _, name := range c.Remove {
		if strayKind(name) == "" {
			return fmt.Errorf("it removes %q, which is not a file of a dataset", name)
		}
		if names[name] {
			return fmt.Errorf("the manifest lists %s, but the commit removes it", name)
		}
	}
	for _, o := range c.Beside {
		if !names[o.Name] {
			return fmt.Errorf("the manifest lists no part that %s belongs to", o.Name)
		}
	}
	return nil
}

// names returns the names that the commit needs: those in its manifest and those that it will
// remove. There are none if c is nil.
func (c *Commit) names() []string {
	if c == nil {
		return nil
	}
	return slices.AppendSeq(slices.Clone(c.Remove), maps.Keys(c.Manifest.names()))
}

// run returns the id of the commit's run, "" if c is nil.
func (c *Commit) run() string {
	if c == nil {
		return ""
	}
	return c.RunID
}
