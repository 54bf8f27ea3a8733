package pipelines

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/formetl/formetl/pipelines/definition"
)

// TestBudgetState: it tells what a run would meet, and waits for nobody.
func TestBudgetState(t *testing.T) {
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	// Booked a day and a second, 23 hours, an hour, 50 and 10 seconds ago; and
	// in a minute, by a clock that was set back.
	agos := []time.Duration{24*time.Hour + time.Second, 23 * time.Hour, time.Hour, 50 * time.Second, 10 * time.Second, -time.Minute}
	booked := make([]int64, 0, len(agos))
	for _, ago := range agos {
		booked = append(booked, now.Add(-ago).UnixMilli())
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
			def := budgeted(t.TempDir(), c.perMinute, c.perDay)
			l := ledgerOf(def)
			data, err := json.Marshal(ledgerFile{DayUntil: now.Add(time.Hour).UnixMilli(), Booked: booked})
			if err == nil {
				err = os.WriteFile(l.path(), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			lock := flock.New(filepath.Join(l.folder, l.name+".lock"))
			if err := lock.Lock(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lock.Close() }()
			b, err := budgetState(def, now)
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
	def := budgeted(t.TempDir(), 0, 3)
	if b, err := budgetState(def, time.Now()); err != nil || b.Day != 0 || exists(ledgerOf(def).path()) {
		t.Errorf("before the first: %+v, %v", b, err)
	}
	budget := sharedBudget(def, time.Now)
	for range 3 {
		if err := budget.Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	b, err := budgetState(def, now)
	if err != nil || b.Day != 3 || b.Next.Before(now.Add(23*time.Hour)) || b.Next.After(now.Add(24*time.Hour)) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := os.Remove(ledgerOf(def).path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ledgerOf(def).path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := budgetState(def, now); !isError[*SpoolError](err) {
		t.Errorf("got %v", err)
	}
}

// TestLeftSpools: those of the definition, of runs that are gone.
func TestLeftSpools(t *testing.T) {
	state := t.TempDir()
	def := &definition.Definition{Name: "nightly", File: "/etc/nightly.yaml", State: state, Forms: []string{"*"}, Exclude: []string{"secret"}, Source: definition.Source{Zone: time.UTC}}
	dead := begun(t, state, "nightly", "orders")
	spoolDay(t, dead, 1, 0)
	spoolDay(t, dead, 2, 0)
	dies(t, dead)
	for _, name := range [][2]string{{"nightly", "secret"}, {"other", "orders"}} {
		dies(t, begun(t, state, name[0], name[1]))
	}
	live := begun(t, state, "nightly", "forms")
	left := ofForms(leftSpools(def), []string{"orders", "forms"})
	if len(left) != 1 || left[0].Form != "orders" || left[0].RunID != "run1" || left[0].Windows != 2 || left[0].Rows != 6 || left[0].Bytes == 0 {
		t.Errorf("left %+v", left)
	}
	report, err := State(t.Context(), def, Options{})
	if err != nil || len(report.Forms) != 1 || report.Forms[0].Form != "orders" || len(report.Spools) != 1 {
		t.Errorf("report %+v, %v", report, err)
	}
	reset, err := ResetState(t.Context(), def, Options{}, time.Time{})
	if err != nil || len(reset.Spools) != 1 || reset.Spools[0].Windows != 2 {
		t.Errorf("discarded %+v, %v", reset.Spools, err)
	}
	if exists(dead.folder) || !exists(live.folder) || len(spools(spoolsIn(state))) != 3 {
		t.Errorf("left %v", spools(spoolsIn(state)))
	}
	if again, err := ResetState(t.Context(), def, Options{}, time.Time{}); err != nil || len(again.Spools) > 0 {
		t.Errorf("again %+v, %v", again, err)
	}
	if err := live.close(false); err != nil {
		t.Error(err)
	}
}
