package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Step names a step of a commit.
type Step string

// The steps of a commit, in order. From StepIntent on the commit is recorded
// at the destination: whatever happens, Recover finishes it.
const (
	StepCheck     Step = "check"     // the base is still the current manifest
	StepIDs       Step = "ids"       // id sets of new parts are written; once for each
	StepIntent    Step = "intent"    // the commit is recorded
	StepUnmark    Step = "unmark"    // _SUCCESS, or a file's manifest, is removed
	StepParts     Step = "parts"     // parts get their final names; once for each
	StepObjects   Step = "objects"   // dead letters are written; once for each
	StepManifest  Step = "manifest"  // the manifest is written
	StepSupersede Step = "supersede" // superseded parts and id sets are removed; once for each
	StepMark      Step = "mark"      // _SUCCESS is written
	StepClose     Step = "close"     // the record is removed
)

// Hook is called before each action of a commit, always by one goroutine.
// Earlier actions of the same step may still be under way. An error ends the
// commit there, as a crash would, and nothing is cleaned up. Callers use it to
// check the lease, and tests use it for their fault points.
type Hook func(Step) error

// SmallObject is a small object that a commit writes beside the data. If Data
// is nil, the commit removes the object, such as dead letters of an earlier
// run.
type SmallObject struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// CommitError is a commit that was not finished.
type CommitError struct {
	RunID string
	Step  Step
	// Recorded tells that the destination holds the commit's record. The next
	// run finishes the commit by Recover, so the staged objects must stay.
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
	Objects    []SmallObject `json:"objects,omitempty"`
	// IDs are the id sets of new parts, named by IDsName. They are written
	// before the commit is recorded and are not part of the record, which keeps
	// it small. Nobody reads a set before the manifest lists its part.
	IDs []SmallObject `json:"-"`
	// SupersededIDs are the names of the id sets of superseded parts. A set
	// that a listed part has too is not removed.
	SupersededIDs []string `json:"superseded_ids,omitempty"`
	// Journal stands in records of older versions only. Their journals are removed
	// when the dataset is opened, see DiscardJournal.
	Journal string `json:"journal,omitempty"`
	Hook    Hook   `json:"-"` // nil: none
}

// Do makes the change visible, either whole or not at all:
//
//  1. The current manifest must have the version Base. Otherwise the error
//     wraps ErrConflict, the run's staged parts are aborted, and nothing else
//     changes.
//  2. The id sets of new parts are written, and then the commit is recorded in
//     the control folder. If another run's record lies there, the id sets are
//     removed again and the error wraps ErrConflict: that run is committing, or
//     it died and Recover must finish it.
//  3. _SUCCESS is removed. From now on readers that glob can see that the
//     dataset is changing.
//  4. Parts get their final names. No part ever had these names before.
//  5. The manifest is replaced by compare-and-swap, so its readers see the new
//     run in one step. If someone else changed it, the run's own parts and id
//     sets are removed and the error wraps ErrConflict.
//  6. Superseded parts and id sets are removed, _SUCCESS is written, and the
//     record is removed.
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

// Record does the first two steps of Do: from then on the commit is done,
// whatever becomes of this process. A run of several outputs records the
// commits of all before it publishes the first.
func (c DatasetCommit) Record(ctx context.Context, d Destination) (*Recorded, error) {
	r := &committing{
		d: d, run: c.RunID, hook: c.Hook, prepared: c.New, unused: c.Unused, objects: c.Objects, ids: c.IDs, ownIDs: c.ownIDs(),
		manifest: ManifestName, intent: intentPath(""), step: StepCheck,
	}
	data, err := c.Manifest.encodeFor(c.RunID, c.New, c.Superseded)
	if err == nil {
		err = c.checkIDs()
	}
	if err != nil {
		return nil, r.failed(err)
	}
	if err := r.record(ctx, intent{Dataset: &c}, c.Base, data); err != nil {
		return nil, err
	}
	return &Recorded{publish: func(ctx context.Context) error { return r.failed(r.publishDataset(ctx, c, data)) }}, nil
}

// Recorded is a commit that stands recorded at its destination. Whoever does
// not publish it leaves that to Recover.
type Recorded struct {
	publish func(ctx context.Context) error
}

// Publish does the steps that follow the record.
func (r *Recorded) Publish(ctx context.Context) error { return r.publish(ctx) }

func (r *committing) publishDataset(ctx context.Context, c DatasetCommit, manifest []byte) error {
	if err := r.at(StepUnmark, func() error { return r.d.Delete(ctx, SuccessName) }); err != nil {
		return err
	}
	if err := r.publishParts(ctx); err != nil {
		if errors.Is(err, ErrConflict) { // the object stays there, so a retry would fail too
			err = &CreateError{Op: "commit", Path: "the parts", Hint: "no manifest lists it: move it away, and run again", Err: err}
		}
		if errors.Is(err, ErrConflict) || errors.Is(err, ErrStagedGone) {
			return r.rollBack(ctx, err)
		}
		return err
	}
	if err := r.writeObjects(ctx); err != nil {
		return err
	}
	err := r.at(StepManifest, func() error { return putOnce(ctx, r.d, ManifestName, manifest, c.Base) })
	if errors.Is(err, ErrConflict) {
		return r.rollBack(ctx, err)
	}
	if err != nil {
		return err
	}
	needless := c.needless()
	remove := func(ctx context.Context, i int) error { return r.d.Delete(ctx, needless[i]) }
	if err := r.each(ctx, StepSupersede, len(needless), remove); err != nil {
		return err
	}
	mark := func() error { return r.d.Put(ctx, SuccessName, []byte(c.RunID+"\n"), AnyVersion) }
	if err := r.at(StepMark, mark); err != nil {
		return err
	}
	return r.at(StepClose, func() error { return r.close(ctx) })
}

// close ends the commit. It removes the record last, so that Recover repeats
// whatever an interrupted close left undone.
func (r *committing) close(ctx context.Context) error {
	if err := AbortAll(ctx, r.d, r.unused...); err != nil {
		return err
	}
	return r.d.Delete(ctx, r.intent)
}

// FileCommit is one run's replacement of a single file. It is a plain value
// that can be recorded and done again by another process.
type FileCommit struct {
	RunID    string   `json:"run_id"`
	Manifest Manifest `json:"manifest"`
	// Base is the version of the file's manifest that was read when the run
	// started, NoVersion if there was none.
	Base    string        `json:"base"`
	File    Prepared      `json:"file"` // Do sets Replace
	Objects []SmallObject `json:"objects,omitempty"`
	Hook    Hook          `json:"-"` // nil: none
}

// Do replaces the file in three steps: it removes the old manifest, replaces
// the file, and writes the new manifest. So no manifest ever describes another
// state of the file. A reader of the file sees the old or the new one, always
// whole. A reader of the manifest finds none while a commit is under way, and
// tries again. One that reads the manifest and then the file compares the
// sha256 that the manifest gives.
//
// The steps before and the errors are those of DatasetCommit.Do.
func (c FileCommit) Do(ctx context.Context, d Destination) error {
	recorded, err := c.Record(ctx, d)
	if err != nil {
		return err
	}
	return recorded.Publish(ctx)
}

// Record is that of DatasetCommit.
func (c FileCommit) Record(ctx context.Context, d Destination) (*Recorded, error) {
	c.File.Replace = true
	r := &committing{
		d: d, run: c.RunID, hook: c.Hook, prepared: []Prepared{c.File}, objects: c.Objects,
		manifest: FileManifestName(c.File.Name), intent: intentPath(c.File.Name), step: StepCheck,
	}
	data, err := c.Manifest.encodeFor(c.RunID, r.prepared, nil)
	if err != nil {
		return nil, r.failed(err)
	}
	if err := r.record(ctx, intent{File: &c}, c.Base, data); err != nil {
		return nil, err
	}
	return &Recorded{publish: func(ctx context.Context) error { return r.failed(r.publishFile(ctx, data)) }}, nil
}

func (r *committing) publishFile(ctx context.Context, data []byte) error {
	if err := r.at(StepUnmark, func() error { return r.unmarkFile(ctx, data) }); err != nil {
		return err
	}
	if err := r.publishParts(ctx); err != nil {
		if errors.Is(err, ErrStagedGone) {
			return r.rollBack(ctx, err)
		}
		return err
	}
	if err := r.writeObjects(ctx); err != nil {
		return err
	}
	// While the record lies here no other run writes here. So the file is this
	// run's own, and its manifest can be written without a condition.
	write := func() error { return r.d.Put(ctx, r.manifest, data, AnyVersion) }
	if err := r.at(StepManifest, write); err != nil {
		return err
	}
	return r.at(StepClose, func() error { return r.close(ctx) })
}

// unmarkFile removes the manifest of the file's earlier state. If the commit is
// done again, its own manifest stays.
func (r *committing) unmarkFile(ctx context.Context, data []byte) error {
	now, _, err := r.d.Get(ctx, r.manifest)
	if errors.Is(err, ErrNotExist) || err == nil && slices.Equal(now, data) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.d.Delete(ctx, r.manifest)
}

// encodeFor gives the manifest's bytes. It first checks that the commit agrees
// with the manifest, so that no manifest lists an object that is not there.
func (m Manifest) encodeFor(run string, prepared []Prepared, superseded []string) ([]byte, error) {
	if err := m.fits(run, prepared, superseded); err != nil {
		return nil, err
	}
	return m.Encode()
}

// fits tells whether a commit agrees with its manifest.
func (m Manifest) fits(run string, prepared []Prepared, superseded []string) error {
	if m.RunID != run {
		return fmt.Errorf("the manifest is of run %q", m.RunID)
	}
	if m.Parts == nil {
		m.Parts = []Part{}
	}
	if problem := m.problem(); problem != "" {
		return &ManifestError{Name: ManifestName, Problem: problem}
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

// putOnce is Put, but succeeds if the object already holds the data.
func putOnce(ctx context.Context, s Store, name string, data []byte, version string) error {
	err := s.Put(ctx, name, data, version)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	now, _, getErr := s.Get(ctx, name)
	switch {
	case getErr == nil && slices.Equal(now, data):
		return nil
	case getErr != nil && !errors.Is(getErr, ErrNotExist):
		return getErr // nobody knows who wrote the object: the record stays, and the next run decides
	}
	return err
}

func paths(parts []Part) map[string]bool {
	set := make(map[string]bool, len(parts))
	for _, p := range parts {
		set[p.Path] = true
	}
	return set
}
