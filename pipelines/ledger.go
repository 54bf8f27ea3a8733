package pipelines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/formetl/formetl/extract"
)

// sharedBudget is the budget of a definition's account, shared by all runs against
// it that have the same state folder; nil where the definition sets none. now
// is the clock of the bookings.
func sharedBudget(def *Definition, now func() time.Time) extract.Budget {
	r := def.Source.Requests
	if r.PerMinute <= 0 && r.PerDay <= 0 {
		return nil
	}
	return extract.NewRollingBudget(r.PerMinute, r.PerDay, ledgerOf(def)).WithClock(now)
}

// ledgerOf is the ledger of a definition's account.
func ledgerOf(def *Definition) *ledger {
	account := sha256.Sum256([]byte(strings.TrimRight(def.Source.BaseURL, "/") + "\n" + def.Source.Account))
	return &ledger{folder: def.State, name: "requests-" + hex.EncodeToString(account[:8])}
}

// ledger is a file in the state folder that remembers when requests were
// booked, as a JSON array of Unix milliseconds, oldest first. A lock beside it
// makes processes take turns.
type ledger struct {
	folder, name string
}

// lockPause is how often a lock that another process holds is asked for: a
// turn takes about a millisecond.
const lockPause = 2 * time.Millisecond

// Update is that of extract.Ledger.
func (l *ledger) Update(ctx context.Context, change func(booked []time.Time) []time.Time) (err error) {
	if err := os.MkdirAll(l.folder, 0o750); err != nil {
		return l.fail(err)
	}
	lock := flock.New(filepath.Join(l.folder, l.name+".lock"), flock.SetPermissions(0o640))
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return l.fail(err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	booked, err := l.read()
	if err != nil {
		return l.fail(err)
	}
	return l.fail(l.write(change(booked)))
}

func (l *ledger) path() string { return filepath.Join(l.folder, l.name+".json") }

// read gives what is booked. A file that cannot be understood counts as none:
// a budget too many is spent once, rather than every run failing for good.
func (l *ledger) read() ([]time.Time, error) {
	data, err := os.ReadFile(l.path())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stamps []int64
	if json.Unmarshal(data, &stamps) != nil {
		stamps = nil
	}
	booked := make([]time.Time, len(stamps))
	for i, ms := range stamps {
		booked[i] = time.UnixMilli(ms)
	}
	return booked, nil
}

// write replaces the file in one step.
func (l *ledger) write(booked []time.Time) error {
	stamps := make([]int64, len(booked))
	for i, t := range booked {
		stamps[i] = t.UnixMilli()
	}
	data, err := json.Marshal(stamps)
	if err != nil {
		return err
	}
	next := l.path() + ".new"
	if err := os.WriteFile(next, data, 0o640); err != nil {
		return err
	}
	return os.Rename(next, l.path())
}

func (l *ledger) fail(err error) error {
	if err == nil {
		return nil
	}
	return &SpoolError{Folder: l.folder, Err: fmt.Errorf("the request budget: %w", err)}
}
