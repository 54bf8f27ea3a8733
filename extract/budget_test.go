package extract

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudgetMinute: any 60 seconds hold at most the limit, and waiting is as
// short as it can be.
func TestBudgetMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		b := NewRollingBudget(limit, 0, nil)
		start := time.Now()
		var mu sync.Mutex
		var times []time.Duration
		var group sync.WaitGroup
		for range 23 {
			group.Go(func() {
				if err := b.Reserve(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				times = append(times, time.Since(start))
				mu.Unlock()
			})
		}
		group.Wait()
		for i, at := range times {
			if want := time.Duration(i/limit) * time.Minute; at != want {
				t.Errorf("request %d went at %s, want %s", i, at, want)
			}
		}
	})
}

// TestBudgetRolls: the minute rolls, it does not begin anew at full minutes.
func TestBudgetRolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewRollingBudget(2, 0, nil)
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
		reserve(60 * time.Second)
		reserve(110 * time.Second)
		reserve(120 * time.Second)
	})
}

func TestBudgetDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewRollingBudget(0, 3, nil)
		start := time.Now()
		for range 3 {
			if err := b.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		err := b.Reserve(t.Context())
		e := mustAs[*BudgetError](t, err)
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

func TestBudgetWithoutLimits(t *testing.T) {
	b := NewRollingBudget(0, 0, nil)
	for range 100_000 {
		if err := b.Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.day.times) != 0 || len(b.minute.times) != 0 {
		t.Error("it remembers what nobody asks for")
	}
}

func TestBudgetIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewRollingBudget(1, 0, nil)
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
		if err := NewRollingBudget(5, 5, nil).Reserve(ctx); !errors.Is(err, stopped) {
			t.Errorf("a cancelled request was booked: %v", err)
		}
	})
}
