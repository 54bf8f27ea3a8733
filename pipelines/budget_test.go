package pipelines

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/checkpoint"
)

// stateAt is a state in a folder.
func stateAt(folder string) checkpoint.State {
	d, err := local.NewState(folder)
	if err != nil {
		panic(err)
	}
	return checkpoint.NewState(d, folder)
}

// budgetOf returns a budget in a state of its own.
func budgetOf(t *testing.T, perMinute, perDay int, now func() time.Time) *sharedBudget {
	return newBudget(budgeted("", perMinute, perDay), stateAt(t.TempDir()), now, nil).(*sharedBudget)
}

// TestBudgetRolls: the minute rolls, it does not begin anew at full minutes.
func TestBudgetRolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(t, 2, 0, time.Now)
		start := time.Now()
		reserve := func(want time.Duration) {
			t.Helper()
			if err := b.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at := time.Since(start); at != want {
				t.Errorf("went at %s, want %s", at, want)
			}
		}
		reserve(0)
		time.Sleep(50 * time.Second) // virtual
		reserve(50 * time.Second)
		reserve(61 * time.Second)
		reserve(111 * time.Second)
		reserve(122 * time.Second)
	})
}

func TestBudgetDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(t, 0, 3, time.Now)
		start := time.Now()
		for range 3 {
			if err := b.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		err := b.Reserve(t.Context())
		e, ok := errors.AsType[*transport.BudgetError](err)
		if !ok {
			t.Fatal(err)
		}
		if e.Limit != 3 || e.Per != 24*time.Hour || !e.Until.Equal(start.Add(24*time.Hour)) || !e.Temporary() {
			t.Errorf("%+v", e)
		}
		if !strings.Contains(err.Error(), e.Until.Format(time.RFC3339)) {
			t.Errorf("the error does not say when to come back: %v", err)
		}
		time.Sleep(time.Until(e.Until))
		if err := b.Reserve(t.Context()); err != nil {
			t.Errorf("a day after the first: %v", err)
		}
		if err := b.Reserve(t.Context()); err == nil {
			t.Error("the second one of the day is still booked")
		}
	})
}

// TestBudgetTellsOfLongWaits once for all requests that wait for the same moment, and not
// of the short ones of a budget that is used evenly.
func TestBudgetTellsOfLongWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var told []time.Duration
		b := budgetOf(t, 20, 0, time.Now)
		b.waits = func(perMinute int, until time.Time) {
			if perMinute != 20 {
				t.Errorf("a budget of %d", perMinute)
			}
			told = append(told, until.Sub(began))
		}
		var requests sync.WaitGroup
		for range 4 {
			requests.Go(func() {
				for range 15 { // 60 in all: two long waits
					if err := b.Reserve(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		requests.Wait()
		if want := []time.Duration{transport.BudgetMinute, 2 * transport.BudgetMinute}; !slices.Equal(told, want) {
			t.Errorf("told of waits until %v, want %v", told, want)
		}
		told = nil
		time.Sleep(2 * transport.BudgetMinute)
		for range 40 {
			if err := b.Reserve(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(3 * time.Second) // evenly: each request waits a little or not at all
		}
		if len(told) > 0 {
			t.Errorf("told of short waits: %v", told)
		}
	})
}

func TestBudgetIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetOf(t, 1, 0, time.Now)
		if err := b.Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Reserve(ctx) }()
		synctest.Wait()
		cancel(stopped)
		if err := <-done; !errors.Is(err, stopped) {
			t.Errorf("err = %v", err)
		}
		if err := budgetOf(t, 5, 5, time.Now).Reserve(ctx); !errors.Is(err, stopped) {
			t.Errorf("a cancelled request was booked: %v", err)
		}
	})
}

// clock is a wall clock that somebody sets.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())).Round(0) } // without a monotonic part

func (c *clock) jump(by time.Duration) { c.off.Add(int64(by)) }

// TestBudgetBearsAJumpingClock: a jump while the minute is used up costs no
// more than a minute more, and a clock that stands still blocks nobody.
func TestBudgetBearsAJumpingClock(t *testing.T) {
	for _, by := range []time.Duration{-72 * time.Hour, -3 * time.Hour, -10 * time.Minute, -time.Second, time.Second, 10 * time.Minute, 3 * time.Hour, 72 * time.Hour} {
		for _, waiting := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := &clock{}
				b := budgetOf(t, 2, 10, c.now)
				for range 2 {
					if err := b.Reserve(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				if waiting {
					time.AfterFunc(30*time.Second, func() { c.jump(by) })
				} else {
					c.jump(by)
				}
				for i := range 4 {
					if err := b.Reserve(t.Context()); err != nil {
						t.Fatal(err)
					}
					if waited, most := time.Since(start), time.Duration(i/2+2)*transport.BudgetMinute; waited > most {
						t.Errorf("by %s, request %d went after %s, want at most %s", by, i, waited, most)
					}
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		still := time.Now()
		b := budgetOf(t, 2, 10, func() time.Time { return still })
		start := time.Now()
		for i := range 6 {
			if err := b.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited, most := time.Since(start), time.Duration(i)*transport.BudgetMinute; waited > most {
				t.Errorf("by a clock that stands still request %d went after %s, want at most %s", i, waited, most)
			}
		}
	})
}

// TestBudgetOfADayBearsAJumpingClock: set back, it never gives more than the
// budget in real 24 hours and comes back within as long of the jump; set
// forward, it gives back early no more than it jumped over.
func TestBudgetOfADayBearsAJumpingClock(t *testing.T) {
	const limit = 5
	for _, by := range []time.Duration{-1000 * time.Hour, -30 * time.Hour, -5 * time.Hour, -time.Minute, time.Minute, 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := &clock{}
			b := budgetOf(t, 0, limit, c.now)
			var times []time.Time
			jumped := time.Now().Add(7*time.Hour + time.Minute) // not while the budget is asked
			time.AfterFunc(time.Until(jumped), func() { c.jump(by) })
			for range 24 * 4 { // four days, every hour
				err := b.Reserve(t.Context())
				e, used := errors.AsType[*transport.BudgetError](err)
				switch {
				case err == nil:
					times = append(times, time.Now())
				case !used:
					t.Fatal(err)
				case e.Until.Sub(c.now()) > 24*time.Hour || !e.Until.After(c.now()):
					t.Errorf("by %s: to come back at %s, it is %s", by, e.Until, c.now())
				}
				time.Sleep(time.Hour) // virtual
			}
			for i := limit; i < len(times); i++ {
				if between := times[i].Sub(times[i-limit]); between < 24*time.Hour-max(0, by) {
					t.Errorf("by %s: %d requests within %s", by, limit+1, between)
				}
			}
			if n := len(times); n < 3*limit {
				t.Errorf("by %s: %d requests in four days", by, n)
			}
		})
	}
}
