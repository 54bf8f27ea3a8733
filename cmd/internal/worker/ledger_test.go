package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

// service counts requests, and fails the test where one exceeds a limit.
type service struct {
	t      *testing.T
	limits Limits

	mu     sync.Mutex
	now    int
	peak   int
	recent []time.Time
	by     map[string]int
}

func (s *service) request(worker string, takes time.Duration) {
	s.mu.Lock()
	s.now++
	s.peak = max(s.peak, s.now)
	at := time.Now()
	s.recent = append(slices.DeleteFunc(s.recent, func(t time.Time) bool { return at.Sub(t) >= time.Minute }), at)
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.by[worker]++
	if s.now > s.limits.Concurrency {
		s.t.Errorf("%d requests at once, and the limit is %d", s.now, s.limits.Concurrency)
	}
	if n := len(s.recent); s.limits.PerMinute > 0 && n > s.limits.PerMinute {
		s.t.Errorf("%d requests in a minute, and the limit is %d", n, s.limits.PerMinute)
	}
	s.mu.Unlock()
	time.Sleep(takes)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
}

// bank is the ledger of one account, as the Budget workflow keeps it.
type bank struct {
	mu     sync.Mutex
	ledger ledger
	random *rand.Rand
	lossy  bool
	asked  int
}

// ask answers after a while. Where it is lossy, some questions or answers get lost.
func (b *bank) ask(ctx context.Context, _ string, a Ask) (Share, error) {
	b.mu.Lock()
	lost, delay := b.lossy && b.random.IntN(8) == 0, time.Duration(b.random.IntN(200))*time.Millisecond
	early := b.random.IntN(2) == 0
	b.asked++
	b.mu.Unlock()
	time.Sleep(delay)
	if lost && early {
		return Share{}, errors.New("the question is lost")
	}
	b.mu.Lock()
	s := b.ledger.share(time.Now(), a)
	b.mu.Unlock()
	time.Sleep(delay)
	if lost {
		return Share{}, errors.New("the answer is lost")
	}
	return s, ctx.Err()
}

// TestBudgetIsKept has workers send through their gates, with lost messages and with workers
// that come and go. No limit is ever passed, and nobody starves.
func TestBudgetIsKept(t *testing.T) {
	for _, limits := range []Limits{
		{Concurrency: 1, Timeout: time.Second},
		{Concurrency: 4, Timeout: time.Second},
		{Concurrency: 2, PerMinute: 30, Timeout: time.Second},
		{Concurrency: 16, PerMinute: 600, Timeout: time.Second},
		{Concurrency: 4, PerMinute: 1, Timeout: time.Second},
	} {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d at once, %d a minute, lossy %t", limits.Concurrency, limits.PerMinute, lossy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { keepBudget(t, limits, lossy) })
			})
		}
	}
}

func keepBudget(t *testing.T, limits Limits, lossy bool) {
	b := &bank{random: rand.New(rand.NewPCG(1, 2)), lossy: lossy} //nolint:gosec // for a test
	s := &service{t: t, limits: limits}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for n := range 3 {
		g := &gate{
			limits: limits, worker: fmt.Sprint("w", n), log: slog.New(slog.DiscardHandler), changed: make(chan struct{}), asking: make(chan struct{}, 1),
			ask: func(ctx context.Context, a Ask) (Share, error) { return b.ask(ctx, "", a) },
		}
		for i := range 6 {
			group.Go(func() {
				time.Sleep(time.Duration(n*40) * time.Second)
				random := rand.New(rand.NewPCG(uint64(n), uint64(i))) //nolint:gosec // for a test
				for g.Reserve(ctx) == nil {
					s.request(g.worker, time.Duration(random.IntN(900))*time.Millisecond)
					g.Done()
					if random.IntN(20) == 0 {
						time.Sleep(time.Duration(random.IntN(30)) * time.Second)
					}
				}
			})
		}
	}
	group.Wait()
	time.Sleep(5 * time.Minute) // the gates give everything back
	b.mu.Lock()
	defer b.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := 0
	for _, n := range s.by {
		sent += n
	}
	t.Logf("%d requests, at most %d at once, by worker %v; %d questions", sent, s.peak, s.by, b.asked)
	least := 10 * limits.Concurrency * 60 // at half a second each, half of what is allowed
	if limits.PerMinute > 0 {
		least = min(least, 10*limits.PerMinute*7/10)
	}
	if sent < least/2 {
		t.Errorf("%d requests in ten minutes, want %d or more", sent, least/2)
	}
	for n := range 3 {
		if limits.PerMinute != 1 && s.by[fmt.Sprint("w", n)] < sent/10 {
			t.Errorf("worker %d sent %d of %d requests", n, s.by[fmt.Sprint("w", n)], sent)
		}
	}
	if !lossy && !b.ledger.idle(time.Now().Add(2*time.Minute)) {
		t.Errorf("lent for ever: %+v", b.ledger)
	}
}

// TestBudgetOfADay ends a request with the error that a run by itself gets.
func TestBudgetOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // for a test
		g := newGates(b.ask, slog.New(slog.DiscardHandler))
		limits := Limits{Concurrency: 2, PerDay: 10, Timeout: time.Second}
		one := &gate{
			limits: limits, worker: "w", log: g.log, changed: make(chan struct{}), asking: make(chan struct{}, 1),
			ask: func(ctx context.Context, a Ask) (Share, error) { return b.ask(ctx, "", a) },
		}
		sent := 0
		var err error
		for ; err == nil && sent < 20; sent++ {
			if err = one.Reserve(t.Context()); err == nil {
				one.Done()
			}
		}
		used, ok := errors.AsType[*transport.BudgetError](err)
		if !ok || sent != 11 || used.Limit != 10 {
			t.Fatalf("%d requests, then %v", sent-1, err)
		}
		time.Sleep(time.Until(used.Until) + time.Minute)
		if err := one.Reserve(t.Context()); err != nil {
			t.Errorf("a day later: %v", err)
		} else {
			one.Done()
		}
		time.Sleep(time.Minute)
	})
}

// TestBudgetWithoutAnswer: a request that gets no answer ends after a minute and says so, also
// where the question itself never ends. It is sent once there is an answer again.
func TestBudgetWithoutAnswer(t *testing.T) {
	for name, endless := range map[string]bool{"each question fails": false, "the question never ends": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, there := &bank{random: rand.New(rand.NewPCG(1, 2))}, make(chan struct{}) //nolint:gosec // for a test
				var log bytes.Buffer
				g := newGates(func(ctx context.Context, account string, a Ask) (Share, error) {
					limit := ctx.Done()
					if endless {
						limit = nil
					}
					select {
					case <-limit:
						return Share{}, ctx.Err()
					case <-there:
						return b.ask(context.WithoutCancel(ctx), account, a)
					}
				}, slog.New(slog.NewTextHandler(&log, nil)))
				one := g.of(&definition.Definition{Source: definition.Source{Account: "acme", Requests: definition.Requests{Concurrency: 2, Timeout: time.Second}}})
				began := time.Now()
				err := one.Reserve(t.Context())
				if exit.Code(err) != exit.Temporary || !strings.Contains(err.Error(), budgetID("")) || time.Since(began) != silentFor {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
				close(there)
				if err := one.Reserve(t.Context()); err != nil {
					t.Errorf("there are answers again: %v", err)
				}
				one.Done()
				time.Sleep(time.Minute)
				if !endless && !strings.Contains(log.String(), "could not be renewed") {
					t.Errorf("logged:\n%s", &log)
				}
			})
		})
	}
}

// TestLongWaitIsTold: a request that is lent nothing for long waits on, and the log says so.
func TestLongWaitIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		nothing := func(context.Context, string, Ask) (Share, error) { return Share{}, nil }
		one := newGates(nothing, slog.New(slog.NewTextHandler(&log, nil))).of(&definition.Definition{Source: definition.Source{Requests: definition.Requests{Concurrency: 1}}})
		ctx, stop := context.WithTimeout(t.Context(), 150*time.Second)
		defer stop()
		if err := one.Reserve(ctx); !errors.Is(err, context.DeadlineExceeded) || strings.Count(log.String(), "still waits") != 2 {
			t.Errorf("%v, logged:\n%s", err, &log)
		}
		time.Sleep(time.Minute)
	})
}

// TestDeadWorkersShare is lent to others once its last request must have ended, not before.
func TestDeadWorkersShare(t *testing.T) {
	var l ledger
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	limits := Limits{Concurrency: 2, PerMinute: 10, Timeout: 30 * time.Second}
	if s := l.share(now, Ask{Worker: "dead", Limits: limits, Want: 5}); s.Slots != 2 || s.Booked != 10 {
		t.Fatalf("%+v", s)
	}
	other := Ask{Worker: "other", Limits: limits, Want: 5}
	for after, want := range map[time.Duration]Share{44 * time.Second: {}, 46 * time.Second: {Slots: 2}} {
		is := ledger{Holders: map[string]*holding{"dead": l.Holders["dead"]}}
		s := is.share(now.Add(after), other)
		if s.Slots != want.Slots || s.Booked != 0 {
			t.Errorf("after %s: %+v", after, s)
		}
		if s := is.share(now.Add(2*time.Minute), other); s.Slots != 2 || s.Booked != 10 {
			t.Errorf("two minutes later: %+v", s)
		}
	}
}
