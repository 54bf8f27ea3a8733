package budget

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/pipelines/checkpoint"
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
			budget := Shared(budgeted(state, 0, 10), stateAt(state), time.Now, nil)
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
		if err := Shared(budgeted(state, 0, 10), stateAt(state), time.Now, nil).Reserve(t.Context()); err == nil {
			t.Error("the day's budget came back within the day")
		}
		time.Sleep(time.Hour + time.Second)
		if err := Shared(budgeted(state, 0, 10), stateAt(state), time.Now, nil).Reserve(t.Context()); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

func TestBudgetOfAMinuteWaitsForOtherRuns(t *testing.T) {
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for i := range 7 {
			b := Shared(budgeted(state, 3, 100), stateAt(state), time.Now, nil).(*Budget)
			if err := b.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.Close()
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
	file := filepath.Join(state, ledgerOf(def, stateAt(state)).name)
	if err := os.WriteFile(file, []byte(`{"booked":[[9999999999999,2]],"lent":{"x":{"n":5,"until":9999999999999,"turn":1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Shared(def, stateAt(state), time.Now, nil).Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > time.Minute+time.Second {
			t.Errorf("waited %s for bookings of the future", waited)
		}
	})
	if err := os.WriteFile(file, []byte("{not json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Shared(def, stateAt(state), time.Now, nil).Reserve(t.Context()); err != nil {
		t.Errorf("with a damaged file: %v", err)
	}
	if Shared(budgeted(state, 0, 0), stateAt(state), time.Now, nil) != nil {
		t.Error("a definition without budgets has one")
	}
}

// FuzzLedger reads budgets that anybody may have written: they count or are none.
func FuzzLedger(f *testing.F) {
	f.Add([]byte(`{"day_until":1,"booked":[[1,2],[3,4]],"lent":{"a":{"n":3,"until":9,"turn":2}}}`))
	f.Add([]byte(`{"day_until":9223372036854775807,"booked":[[9223372036854775807,-9223372036854775808]]}`))
	f.Add([]byte(`{"booked":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state := checkpoint.State{Destination: loadtest.NewMemory(), Place: "/state"}
		def := budgeted("", 5, 50)
		if err := state.Put(t.Context(), ledgerOf(def, state).name, data, load.AnyVersion); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = Shared(def, state, time.Now, nil).Reserve(ctx) // it may wait, or be refused for a day
		if u, err := Read(t.Context(), def, state, time.Now()); err != nil || u.Next.IsZero() {
			t.Fatalf("%+v, %v of %s", u, err, data)
		}
	})
}
