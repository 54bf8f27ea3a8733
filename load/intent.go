package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// IntentName is the prefix of the files in the control folder that record a
// commit while it is under way.
const IntentName = "intent"

// LeaseName is the prefix of the files in the control folder that keep other runs away.
const LeaseName = "lease"

// intentPath returns the object name of a commit's record. scope is "" for a
// dataset and the file's name for a single file.
func intentPath(scope string) string { return ScopeName(IntentName, scope) }

// intent is the record of a commit. It holds all that another process needs to
// do the commit again from the beginning.
type intent struct {
	Dataset *DatasetCommit `json:"dataset,omitempty"`
	File    *FileCommit    `json:"file,omitempty"`
	// Previous is the manifest that a file's commit removes, nil if there was
	// none. A rollback puts it back.
	Previous []byte `json:"previous,omitempty"`
}

// commit returns the commit in the form of a dataset's. A file's commit gets
// one part, which is replaced even if the record does not say so.
func (i intent) commit() DatasetCommit {
	switch {
	case i.Dataset != nil:
		return *i.Dataset
	case i.File != nil:
		c := *i.File
		c.File.Replace = true
		return DatasetCommit{RunID: c.RunID, Manifest: c.Manifest, Base: c.Base, New: []Prepared{c.File}, Objects: c.Objects, Hook: c.Hook}
	}
	return DatasetCommit{}
}

func (i intent) run() string { return i.commit().RunID }

// Pending returns the run whose commit is recorded at a scope and not finished, "" for none.
func Pending(ctx context.Context, s Store, scope string) (run string, err error) {
	i, err := readIntent(ctx, s, intentPath(scope))
	if errors.Is(err, ErrNotExist) {
		return "", nil
	}
	return i.run(), err
}

// readIntent reads and checks the record of a commit. If it does not understand
// the whole record, the error has a hint for the user. The record may be
// damaged, or written by anyone. So it may name only objects of its own
// destination that a commit writes.
func readIntent(ctx context.Context, s Store, name string) (intent, error) {
	data, _, err := s.Get(ctx, name)
	if err != nil {
		return intent{}, err
	}
	i, err := decodeIntent(data)
	if err == nil {
		err = i.check(name)
	}
	if err != nil {
		return intent{}, &IOError{Op: "understand the record of a commit,", Path: where(s, name), Hint: "remove it and run with --full", Err: err}
	}
	return i, nil
}

// decodeIntent decodes a record, which must have all its keys and no others.
// Otherwise a damaged record could lead to half a commit that nobody notices.
func decodeIntent(data []byte) (intent, error) {
	var i intent
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := decodeOne(dec, &i); err != nil {
		return i, err
	}
	if problem := lacks(data, reflect.TypeFor[intent]()); problem != "" {
		return i, errors.New(problem)
	}
	return i, nil
}

// check checks that the record holds one commit, and that its object may have this name.
func (i intent) check(name string) error {
	if (i.Dataset == nil) == (i.File == nil) {
		return errors.New("it names no commit, or two")
	}
	if err := CheckRun(i.run()); err != nil {
		return err
	}
	if i.File != nil {
		return i.File.check(name)
	}
	return i.Dataset.check(name)
}

// check checks that the record of a file's commit has this name. The commit may
// name only its file and the file's dead letters.
func (c *FileCommit) check(name string) error {
	if name != intentPath(c.File.Name) {
		return fmt.Errorf("it is the record of %q, which lies elsewhere", c.File.Name)
	}
	for _, o := range c.Objects {
		if o.Name != FileRejectsName(c.File.Name) {
			return fmt.Errorf("no commit of a file writes %q", o.Name)
		}
	}
	return c.Manifest.fits(c.RunID, []Prepared{c.File}, nil)
}

// check checks that the record of a dataset's commit has this name. The commit
// may name only objects that it can write.
func (c *DatasetCommit) check(name string) error {
	if name != intentPath("") {
		return errors.New("it is the record of a dataset, in the place of a file's")
	}
	for _, p := range c.New {
		if p.Replace {
			return fmt.Errorf("it replaces %q, and a part is never replaced", p.Name)
		}
		if _, err := ParsePartName(p.Name); err != nil {
			return err
		}
	}
	for _, old := range c.Superseded {
		if _, err := ParsePartName(old); err != nil {
			return fmt.Errorf("it removes what is no part: %w", err)
		}
	}
	if err := c.Manifest.fits(c.RunID, c.New, c.Superseded); err != nil {
		return err
	}
	return c.checkBeside()
}
