package pipelines

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// TestBudgetState: it tells what a run would meet, and waits for nobody.
func TestBudgetState(t *testing.T) {
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	// Booked a day and a second, 23 hours, an hour, 50 and 10 seconds ago; and
	// in a minute, by a clock that was set back.
	agos := []time.Duration{24*time.Hour + time.Second, 23 * time.Hour, time.Hour, 50 * time.Second, 10 * time.Second, -time.Minute}
	r := record{DayUntil: now.Add(time.Hour).UnixMilli()}
	for _, ago := range agos {
		r.book(now.Add(-ago), 1)
	}
	for _, c := range []struct {
		name              string
		perMinute, perDay int
		minute, day       int
		next              time.Duration
	}{
		{"no budget", 0, 0, 0, 0, 0},
		{"room", 10, 100, 3, 5, 0},
		{"the minute is used up", 3, 0, 3, 0, 11 * time.Second},
		{"more than the minute's", 2, 0, 3, 0, 51 * time.Second},
		{"the day is used up", 0, 5, 0, 5, time.Hour},
		{"both are", 3, 4, 3, 5, 23 * time.Hour},
		{"one is left", 4, 6, 3, 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := stateAt(t.TempDir())
			def := budgeted("", c.perMinute, c.perDay)
			if err := ledgerOf(def, state).write(t.Context(), r, load.NoVersion); err != nil {
				t.Fatal(err)
			}
			b, err := readBudget(t.Context(), def, state, now)
			if err != nil {
				t.Fatal(err)
			}
			if b.Minute != c.minute || b.Day != c.day || b.Next.Sub(now) != c.next || b.PerMinute != c.perMinute || b.PerDay != c.perDay {
				t.Errorf("%+v", b)
			}
		})
	}
}

// TestBudgetStateCountsWhatRunsBook, and makes no ledger.
func TestBudgetStateCountsWhatRunsBook(t *testing.T) {
	folder := t.TempDir()
	def, state := budgeted(folder, 0, 3), stateAt(folder)
	if b, err := readBudget(t.Context(), def, state, time.Now()); err != nil || b.Day != 0 || there(filepath.Join(folder, ledgerOf(def, state).name)) {
		t.Errorf("before the first: %+v, %v", b, err)
	}
	budget := newBudget(def, state, time.Now, nil)
	for range 3 {
		if err := budget.Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	b, err := readBudget(t.Context(), def, state, now)
	if err != nil || b.Day != 3 || b.Next.Before(now.Add(23*time.Hour)) || b.Next.After(now.Add(24*time.Hour)) {
		t.Errorf("%+v, %v", b, err)
	}
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
