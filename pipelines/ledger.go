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

	"github.com/formetl/formetl/extract/transport"
)

// sharedBudget is the budget of a definition's account, shared by all runs against
// it that have the same state folder; nil where the definition sets none. now
// is the clock of the bookings.
func sharedBudget(def *Definition, now func() time.Time) transport.Budget {
	r := def.Source.Requests
	if r.PerMinute <= 0 && r.PerDay <= 0 {
		return nil
	}
	return transport.NewRollingBudget(r.PerMinute, r.PerDay, ledgerOf(def)).WithClock(now)
}

// ledgerOf is the ledger of a definition's account.
func ledgerOf(def *Definition) *ledger {
	account := sha256.Sum256([]byte(strings.TrimRight(def.Source.BaseURL, "/") + "\n" + def.Source.Account))
	return &ledger{folder: def.State, name: "requests-" + hex.EncodeToString(account[:8]), day: def.Source.Requests.PerDay > 0}
}

// ledger is a file in the state folder that remembers when requests were
// booked. A lock beside it makes processes take turns.
type ledger struct {
	folder, name string
	day          bool // this definition has a budget per day
}

// ledgerFile is what the ledger's file holds. Bookings of a day are kept only
// where somebody has a budget per day: at fifty a minute they are many.
type ledgerFile struct {
	DayUntil int64   `json:"day_until"` // Unix milliseconds up to which somebody needs a day's bookings
	Booked   []int64 `json:"booked"`    // Unix milliseconds, oldest first
}

// lockPause is how often a lock that another process holds is asked for: a
// turn takes about a millisecond.
const lockPause = 2 * time.Millisecond

// Update is that of transport.Ledger.
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
	file, err := l.load()
	if err != nil {
		return l.fail(err)
	}
	return l.fail(l.write(l.trim(file, change(file.times()))))
}

// trim gives what is to be kept of the bookings, the last of which is the
// latest thing that is known of the time.
func (l *ledger) trim(file ledgerFile, booked []time.Time) ledgerFile {
	next := ledgerFile{DayUntil: file.DayUntil, Booked: make([]int64, 0, len(booked))}
	if len(booked) == 0 {
		return next
	}
	now := booked[len(booked)-1]
	if l.day {
		next.DayUntil = now.Add(24 * time.Hour).UnixMilli()
	}
	from := now.Add(-24 * time.Hour)
	if now.UnixMilli() > next.DayUntil {
		from = now.Add(-transport.BudgetMinute)
	}
	for _, t := range booked {
		if t.After(from) {
			next.Booked = append(next.Booked, t.UnixMilli())
		}
	}
	return next
}

func (l *ledger) path() string { return filepath.Join(l.folder, l.name+".json") }

// read gives what is booked.
func (l *ledger) read() ([]time.Time, error) {
	file, err := l.load()
	return file.times(), err
}

// load reads the file. One that cannot be understood counts as none: a budget
// too many is spent once, rather than every run failing for good.
func (l *ledger) load() (ledgerFile, error) {
	data, err := os.ReadFile(l.path())
	if errors.Is(err, os.ErrNotExist) {
		return ledgerFile{}, nil
	}
	if err != nil {
		return ledgerFile{}, err
	}
	var file ledgerFile
	if json.Unmarshal(data, &file) != nil {
		file = ledgerFile{}
	}
	return file, nil
}

func (f ledgerFile) times() []time.Time {
	booked := make([]time.Time, len(f.Booked))
	for i, ms := range f.Booked {
		booked[i] = time.UnixMilli(ms)
	}
	return booked
}

// write replaces the file in one step.
func (l *ledger) write(file ledgerFile) error {
	data, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return replaceFile(l.path(), data, 0o640)
}

func (l *ledger) fail(err error) error {
	if err == nil {
		return nil
	}
	return &SpoolError{Folder: l.folder, Err: fmt.Errorf("the request budget: %w", err)}
}
