package load

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// JournalName begins the names of the control folder's files that make up a
// dataset's journal: its header, and beside it a folder of records.
const JournalName = "journal"

// JournalHeader says which run a journal is of and what must still be true
// for another run to go on with it.
type JournalHeader struct {
	RunID    string    `json:"run_id"` // of the run that opened it, under which it is committed
	OpenedAt time.Time `json:"opened_at"`
	// Token names the journal's records, so that those of two journals never
	// mix. Open makes it.
	Token string `json:"token"`
	// Base is the version of the manifest that the run began from, NoVersion
	// if there was none. A dataset with another one was changed since.
	Base string `json:"base"`
	// Fingerprint is equal for definitions that give equal parts.
	Fingerprint string `json:"fingerprint"`
	// Body is the run's own: its range, frozen, and its plan.
	Body json.RawMessage `json:"body"`
}

// JournalRecord is one part of the run that is prepared, with the windows
// that it was made of.
type JournalRecord struct {
	Number int            `json:"number"` // names the part in the run's plan
	Parts  []PreparedPart `json:"parts"`  // empty where its windows hold no rows
	// Body is the run's own: what it knows of the part's windows.
	Body json.RawMessage `json:"body"`
}

// PreparedOf are the objects that records list.
func PreparedOf(records ...JournalRecord) []Prepared {
	var prepared []Prepared
	for _, r := range records {
		for _, p := range r.Parts {
			prepared = append(prepared, p.Prepared)
		}
	}
	return prepared
}

// Journal is the record of a dataset's run that is under way. What it lists
// is prepared at the destination: a crash does not cost it again. A journal
// belongs to who holds the destination's lease.
type Journal struct {
	JournalHeader
	d Store
}

// JournalError is a journal that cannot be read.
type JournalError struct {
	Name string
	Err  error
}

// Error names the object and what is wrong with it.
func (e *JournalError) Error() string {
	return fmt.Sprintf("the journal %s cannot be read: %v", e.Name, e.Err)
}

// Unwrap gives the cause.
func (e *JournalError) Unwrap() error { return e.Err }

func journalPath() string { return path.Join(ControlFolder, JournalName) }

func journalFolder(token string) string { return journalPath() + "-" + token }

func (j *Journal) recordPath(number int) string {
	return path.Join(journalFolder(j.Token), fmt.Sprintf("%06d", number))
}

// OpenJournal begins the journal of a run. One that lies there is replaced:
// it was closed, continued or discarded before.
func OpenJournal(ctx context.Context, d Store, h JournalHeader) (*Journal, error) {
	h.Token = rand.Text()
	data, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the journal: %w", err)
	}
	if err := d.Put(ctx, journalPath(), append(data, '\n'), AnyVersion); err != nil {
		return nil, err
	}
	return &Journal{JournalHeader: h, d: d}, nil
}

// ReadJournal reads the journal that a run left: a dead one's, or that of the
// run that holds the lease. None is ErrNotExist; one that cannot be read is a
// *JournalError. Records are in order of their numbers. Objects staged under
// the header's RunID belong to it, also those that no record lists yet: a run
// that goes on with a journal stages under its id.
func ReadJournal(ctx context.Context, d Store) (*Journal, []JournalRecord, error) {
	data, _, err := d.Get(ctx, journalPath())
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{d: d}
	if err := json.Unmarshal(data, &j.JournalHeader); err != nil {
		return nil, nil, &JournalError{Name: journalPath(), Err: err}
	}
	if CheckRun(j.RunID) != nil || CheckRun(j.Token) != nil {
		return nil, nil, &JournalError{Name: journalPath(), Err: errors.New("it names no run")}
	}
	objects, err := d.List(ctx, journalFolder(j.Token)+"/")
	if err != nil {
		return nil, nil, err
	}
	names := NamesOf(objects)
	records := make([]JournalRecord, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(SideBySide)
	for i, name := range names {
		group.Go(func() (err error) {
			records[i], err = j.read(ctx, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	return j, records, nil
}

func (j *Journal) read(ctx context.Context, name string) (JournalRecord, error) {
	var r JournalRecord
	data, _, err := j.d.Get(ctx, name)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, &JournalError{Name: name, Err: err}
	}
	if name != j.recordPath(r.Number) {
		return r, &JournalError{Name: name, Err: errors.New("it is the record number " + strconv.Itoa(r.Number))}
	}
	return r, nil
}

// Record notes a part that is prepared, in place of an earlier record of its
// number.
func (j *Journal) Record(ctx context.Context, r JournalRecord) error {
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(r); err != nil {
		return fmt.Errorf("cannot encode a record of the journal: %w", err)
	}
	return j.d.Put(ctx, j.recordPath(r.Number), data.Bytes(), AnyVersion)
}

// Forget removes the record of a number. A missing one is no error.
func (j *Journal) Forget(ctx context.Context, number int) error {
	return j.d.Delete(ctx, j.recordPath(number))
}

// Close removes the journal, its header last: a journal without some of its
// records costs a run the windows of those, one without its header would be
// litter. The parts that it lists are committed or aborted before.
func (j *Journal) Close(ctx context.Context) error { return CloseJournal(ctx, j.d, j.Token) }

// CloseJournal removes the journal of a token. One that is gone is no error.
func CloseJournal(ctx context.Context, d Store, token string) error {
	if err := deleteAll(ctx, d, journalFolder(token)); err != nil {
		return err
	}
	return d.Delete(ctx, journalPath())
}

// RemoveJournal removes a journal that cannot be read, and what others left
// of theirs. Parts that its records list are not aborted.
func RemoveJournal(ctx context.Context, d Store) error {
	objects, err := d.List(ctx, ControlFolder+"/")
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(NamesOf(objects), func(name string) bool {
		return name != journalPath() && !strings.HasPrefix(name, journalFolder(""))
	})
	return deleteNames(ctx, d, names)
}

// deleteAll removes the objects below a folder.
func deleteAll(ctx context.Context, d Store, folder string) error {
	objects, err := d.List(ctx, folder+"/")
	if err != nil {
		return err
	}
	return deleteNames(ctx, d, NamesOf(objects))
}

func deleteNames(ctx context.Context, d Store, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(SideBySide)
	for _, name := range names {
		group.Go(func() error { return d.Delete(ctx, name) })
	}
	return group.Wait()
}

// AbortAll aborts prepared objects side by side. Those that could not be
// aborted do not stop the others; the error is the first one's. When the
// context ends no more are begun.
func AbortAll(ctx context.Context, d Stager, prepared ...Prepared) error {
	failures := make([]error, len(prepared))
	var group errgroup.Group
	group.SetLimit(SideBySide)
	for i, p := range prepared {
		group.Go(func() error {
			if failures[i] = context.Cause(ctx); failures[i] == nil {
				failures[i] = d.Abort(ctx, p)
			}
			if NotThere(failures[i]) { // listed by a damaged journal or record
				failures[i] = nil
			}
			return nil
		})
	}
	_ = group.Wait() // the failures are kept apart
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	switch {
	case len(failures) == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(failures) > 1:
		return fmt.Errorf("%w (and %d more)", failures[0], len(failures)-1)
	}
	return failures[0]
}
