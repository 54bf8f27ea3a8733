package budget

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

func budgeted(state string, perMinute, perDay int) *definition.Definition {
	return &definition.Definition{State: state, Source: definition.Source{
		BaseURL: "https://fs1.example.com", Account: "acme",
		Requests: definition.Requests{PerMinute: perMinute, PerDay: perDay},
	}}
}

// TestBudgetIsSharedAndKept: several runs, each with a budget of its own over
// one state folder, book no more than the budget together, also one after the
// other, and a day later it is there again.
func TestBudgetIsSharedAndKept(t *testing.T) {
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		booked, refused := 0, 0
		var runs sync.WaitGroup
		for range 4 {
			budget := Shared(budgeted(state, 0, 10), time.Now, nil)
			runs.Go(func() {
				for range 5 {
					err := budget.Reserve(t.Context())
					mu.Lock()
					var used *transport.BudgetError
					switch {
					case err == nil:
						booked++
					case errors.As(err, &used):
						refused++
					default:
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		runs.Wait()
		if booked != 10 || refused != 10 {
			t.Errorf("%d booked and %d refused of 20, want 10 and 10", booked, refused)
		}
		time.Sleep(23 * time.Hour) // virtual
		if err := Shared(budgeted(state, 0, 10), time.Now, nil).Reserve(t.Context()); err == nil {
			t.Error("the day's budget came back within the day")
		}
		time.Sleep(time.Hour + time.Second)
		if err := Shared(budgeted(state, 0, 10), time.Now, nil).Reserve(t.Context()); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

func TestBudgetOfAMinuteWaitsForOtherRuns(t *testing.T) {
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for i := range 7 {
			if err := Shared(budgeted(state, 3, 100), time.Now, nil).Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at, want := time.Since(start).Round(time.Second), time.Duration(i/3)*transport.BudgetMinute; at != want {
				t.Errorf("request %d went at %s, want %s", i, at, want)
			}
		}
	})
}

// TestBudgetSurvivesClockAndGarbage: a clock set back does not lock a run out
// for longer than the budget's own time, and a damaged file is none.
func TestBudgetSurvivesClockAndGarbage(t *testing.T) {
	state := t.TempDir()
	def := budgeted(state, 2, 0)
	file := filepath.Join(state, budgetFile(t, def))
	if err := os.WriteFile(file, []byte("[9999999999999,9999999999999]"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Shared(def, time.Now, nil).Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > time.Minute+time.Second {
			t.Errorf("waited %s for bookings of the future", waited)
		}
	})
	if err := os.WriteFile(file, []byte("{not json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Shared(def, time.Now, nil).Reserve(t.Context()); err != nil {
		t.Errorf("with a damaged file: %v", err)
	}
	if Shared(budgeted(state, 0, 0), time.Now, nil) != nil {
		t.Error("a definition without budgets has one")
	}
}

// budgetFile is the name that a definition's ledger has.
func budgetFile(t *testing.T, def *definition.Definition) string {
	t.Helper()
	probe := *def
	probe.State = t.TempDir()
	if err := Shared(&probe, time.Now, nil).Reserve(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(probe.State, "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	return filepath.Base(names[0])
}

// FuzzLedger reads budgets that anybody may have written: they count or are none.
func FuzzLedger(f *testing.F) {
	f.Add([]byte(`{"day_until":1,"booked":[1,2,3]}`))
	f.Add([]byte(`{"day_until":9223372036854775807,"booked":[9223372036854775807,-9223372036854775808]}`))
	f.Add([]byte(`{"booked":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &ledger{folder: t.TempDir(), name: "requests-x", day: true}
		if err := os.WriteFile(l.path(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.load(); err != nil {
			t.Fatalf("%v of %s", err, data)
		}
	})
}
