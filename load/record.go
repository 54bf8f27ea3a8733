package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// IntentName is the prefix of the files in the control folder that record a
// commit while it is under way.
const IntentName = "intent"

// LeaseName is the prefix of the files in the control folder that keep other runs away.
const LeaseName = "lease"

// recordName returns the object name of a commit's record. scope is "" for a
// dataset and the file's name for a single file.
func recordName(scope string) string { return ScopeName(IntentName, scope) }

// Pending returns the run whose commit is recorded at a scope and not finished, "" for none.
func Pending(ctx context.Context, s Store, scope string) (run string, err error) {
	c, err := readRecord(ctx, s, recordName(scope))
	return c.run(), err
}

// run returns the id of the commit's run, "" if c is nil.
func (c *Commit) run() string {
	if c == nil {
		return ""
	}
	return c.RunID
}

// readRecord reads and checks the record of a commit, which is nil if there is none. If it
// does not understand the whole record, the error has a hint for the user. The record may be
// damaged, or written by anyone. So it may name only objects of its own destination that a
// commit writes.
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
		err = fmt.Errorf("it is the record of %q, which lies elsewhere", c.File)
	}
	if err != nil {
		return nil, &IOError{Op: "understand the record of a commit,", Path: where(s, name), Hint: "run with --full, which takes the commit back", Err: fmt.Errorf("%w: %w", errRecord, err)}
	}
	return c, nil
}

// errRecord means that the record of a commit cannot be understood.
var errRecord = errors.New("it is damaged, or another version wrote it")

// decodeRecord decodes a record, which must have no unknown keys. Otherwise a damaged record
// could lead to half a commit that nobody notices.
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
