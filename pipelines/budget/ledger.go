package budget

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

// Shared returns the request budget of a definition's account. All runs against
// this account with the same state folder share it. It is nil if the definition
// sets no limits. now is the clock of the bookings. waits is called when requests begin
// to wait for long, see transport.RollingBudget.Waits; it may be nil.
func Shared(def *definition.Definition, now func() time.Time, waits func(perMinute int, until time.Time)) transport.Budget {
	r := def.Source.Requests
	if r.PerMinute <= 0 && r.PerDay <= 0 {
		return nil
	}
	b := transport.NewRollingBudget(r.PerMinute, r.PerDay, ledgerOf(def), now)
	b.Waits = waits
	return b
}

// ledgerOf returns the ledger of a definition's account.
func ledgerOf(def *definition.Definition) *ledger {
	return &ledger{folder: def.State, name: "requests-" + AccountName(def), day: def.Source.Requests.PerDay > 0}
}

// AccountName stands for the definition's server and account in names of files of the
// state folder. It is 16 hexadecimal digits.
func AccountName(def *definition.Definition) string {
	account := sha256.Sum256([]byte(strings.TrimRight(def.Source.BaseURL, "/") + "\n" + def.Source.Account))
	return hex.EncodeToString(account[:8])
}

// ledger is a file in the state folder with the times of booked requests.
// Processes take turns by a lock on a second file beside it.
type ledger struct {
	folder, name string
	day          bool // this definition has a budget per day
}

// ledgerFile is the content of the ledger's file. It has the bookings of a
// whole day, which can be many, only if a definition has a daily budget.
type ledgerFile struct {
	DayUntil int64   `json:"day_until"` // Unix milliseconds: until then some definition needs the bookings of a day
	Booked   []int64 `json:"booked"`    // Unix milliseconds, oldest first
}

// lockPause is the time between two attempts to take the lock while another
// process holds it. A turn takes a few milliseconds.
const lockPause = 2 * time.Millisecond

// Update implements transport.Ledger.
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

// trim drops the bookings that no budget counts any more. It takes the time of
// the last booking as the present time.
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

// load reads the file. A file that cannot be parsed counts as empty. Runs may
// then spend one budget too much, but they do not fail for good.
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
	return maybe.WriteFile(l.path(), data, 0o640)
}

// fail wraps an error of the ledger's files in an *Error. It returns nil for nil.
func (l *ledger) fail(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Folder: l.folder, Err: err}
}

// Error reports that a ledger cannot be read or written.
type Error struct {
	Folder string // the state folder
	Err    error  // of the file system
}

// Error names the folder and says what to do.
func (e *Error) Error() string {
	first := "free space"
	if errors.Is(e.Err, fs.ErrPermission) || errors.Is(e.Err, syscall.EROFS) {
		first = "let this user write there"
	}
	return fmt.Sprintf("cannot keep the request budget in %s: %v; %s, or choose another folder with --state", e.Folder, e.Err, first)
}

// Unwrap returns the error of the file system.
func (e *Error) Unwrap() error { return e.Err }
