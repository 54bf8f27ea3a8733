package pipelines

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
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
			budget := newBudget(budgeted(state, 0, 10), stateAt(state), time.Now, nil).(*sharedBudget)
			runs.Go(func() {
				defer budget.Close() // what it reserved and did not use is another's
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
		if err := newBudget(budgeted(state, 0, 10), stateAt(state), time.Now, nil).Reserve(t.Context()); err == nil {
			t.Error("the day's budget came back within the day")
		}
		time.Sleep(time.Hour + time.Second)
		if err := newBudget(budgeted(state, 0, 10), stateAt(state), time.Now, nil).Reserve(t.Context()); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

// TestBudgetSurvivesClockAndGarbage: a clock set back does not lock a run out
// for longer than the budget's own time, and a damaged file is none.
func TestBudgetSurvivesClockAndGarbage(t *testing.T) {
	state := t.TempDir()
	def := budgeted(state, 2, 0)
	file := filepath.Join(state, ledgerOf(def, stateAt(state)).name)
	if err := os.WriteFile(file, []byte(`{"booked":[[9999999999999,2]],"lent":{"x":{"n":5,"until":9999999999999}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := newBudget(def, stateAt(state), time.Now, nil).Reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > time.Minute+time.Second {
			t.Errorf("waited %s for bookings of the future", waited)
		}
	})
	if err := os.WriteFile(file, []byte("{not json"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	at := stateAt(state)
	at.Log = slog.New(slog.NewTextHandler(&log, nil))
	if err := newBudget(def, at, time.Now, nil).Reserve(t.Context()); err != nil || strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), file) {
		t.Errorf("with a damaged file: %v, %s", err, &log)
	}
	if newBudget(budgeted(state, 0, 0), stateAt(state), time.Now, nil) != nil {
		t.Error("a definition without budgets has one")
	}
}

// FuzzLedger reads budgets that anybody may have written: they count or are none.
func FuzzLedger(f *testing.F) {
	f.Add([]byte(`{"day_until":1,"booked":[[1,2],[3,4]],"lent":{"a":{"n":3,"until":9}}}`))
	f.Add([]byte(`{"day_until":9223372036854775807,"booked":[[9223372036854775807,-9223372036854775808]]}`))
	f.Add([]byte(`{"booked":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state := stateAt(t.TempDir())
		def := budgeted("", 5, 50)
		if err := state.Put(t.Context(), ledgerOf(def, state).name, data, load.AnyVersion); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = newBudget(def, state, time.Now, nil).Reserve(ctx) // it may wait, or be refused for a day
		if u, err := readBudget(t.Context(), def, state, time.Now()); err != nil || u.Next.IsZero() {
			t.Fatalf("%+v, %v of %s", u, err, data)
		}
	})
}

// host is how a host reaches a bucket: its clock is off, answers take a while, some are lost,
// and the bucket is away for a while.
type host struct {
	load.Destination
	off      time.Duration // of its clock
	random   *rand.Rand
	from, to time.Time // the bucket is away
	writes   int
}

var errAway = &load.Error{Kind: load.ErrAway, Op: "write", Path: "s3://bucket/state/", Err: errors.New("no answer")}

// Stat tells the time of the bucket, in whole seconds.
func (h *host) Stat(_ context.Context, name string) (load.Object, error) {
	time.Sleep(20 * time.Millisecond)
	return load.Object{Name: name, Changed: time.Now().Add(-20 * time.Millisecond).Truncate(time.Second)}, nil
}

func (h *host) now() time.Time { return time.Now().Add(h.off) }

func (h *host) Get(ctx context.Context, name string) ([]byte, string, error) {
	time.Sleep(20 * time.Millisecond)
	if h.isAway() {
		return nil, "", errAway
	}
	return h.Destination.Get(ctx, name)
}

func (h *host) Put(ctx context.Context, name string, data []byte, version string) error {
	time.Sleep(20 * time.Millisecond)
	if h.isAway() {
		return errAway
	}
	h.writes++
	err := h.Destination.Put(ctx, name, data, version)
	if err == nil && h.random.IntN(10) == 0 {
		return errAway // the answer is lost
	}
	return err
}

func (h *host) isAway() bool { return time.Now().After(h.from) && time.Now().Before(h.to) }

// TestHostsShareABudget: three hosts send as fast as they may for ten minutes. Their clocks
// differ by minutes. One is killed, one is stopped and goes on, and the bucket is away for a
// while. The budget is never passed, and nine tenths of it are used, by few writes.
func TestHostsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, minutes = 60, 10
		bucket := t.TempDir()
		began := time.Now()
		var mu sync.Mutex
		var sent []time.Time
		var group sync.WaitGroup
		hosts := make([]*host, 3)
		for i := range hosts {
			h := &host{
				Destination: stateAt(bucket), off: time.Duration(i-1)*90*time.Second + time.Duration(i)*300*time.Millisecond,
				random: rand.New(rand.NewPCG(uint64(i), 1)), from: began.Add(4 * time.Minute), to: began.Add(4*time.Minute + 20*time.Second), //nolint:gosec // small
			}
			hosts[i] = h
			b := newBudget(budgeted("", limit, 0), checkpoint.NewState(h, "s3://bucket/state/"), h.now, nil).(*sharedBudget)
			for range 4 {
				group.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Millisecond) // so that each knows the bucket's clock a little differently
					for time.Since(began) < minutes*time.Minute {
						if i == 1 && time.Since(began) > 90*time.Second {
							return // killed: it gives nothing back
						}
						if stopped := began.Add(2 * time.Minute); i == 2 && time.Now().After(stopped) && time.Now().Before(stopped.Add(time.Minute)) {
							time.Sleep(time.Minute)
						}
						if err := b.Reserve(t.Context()); err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						sent = append(sent, time.Now())
						mu.Unlock()
						time.Sleep(200 * time.Millisecond)
					}
				})
			}
		}
		group.Wait()
		slices.SortFunc(sent, time.Time.Compare)
		for i := limit; i < len(sent); i++ {
			if between := sent[i].Sub(sent[i-limit]); between < time.Minute {
				t.Fatalf("%d requests within %s, %s after the beginning", limit+1, between, sent[i].Sub(began))
			}
		}
		writes := hosts[0].writes + hosts[1].writes + hosts[2].writes
		t.Logf("%d requests of %d, %d writes", len(sent), limit*minutes, writes)
		if len(sent)*10 < 9*limit*minutes || writes*3 > len(sent)*2 {
			t.Errorf("%d requests of %d, by %d writes", len(sent), limit*minutes, writes)
		}
	})
}

// TestSlowAnswersAreBookedOnce: each of two hosts waits eight seconds for an answer, longer than a
// reservation holds. Another host books what lapsed, and its owner does not book it again.
func TestSlowAnswersAreBookedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, minutes = 12, 10
		bucket := t.TempDir()
		began := time.Now()
		var sent atomic.Int64
		var group sync.WaitGroup
		for i := range uint64(2) {
			h := &host{Destination: stateAt(bucket), random: rand.New(rand.NewPCG(i, 1)), from: began, to: began} //nolint:gosec // for a test
			b := newBudget(budgeted("", limit, 0), checkpoint.NewState(h, "s3://bucket/state/"), h.now, nil)
			group.Go(func() {
				for time.Since(began) < minutes*time.Minute {
					if err := b.Reserve(t.Context()); err != nil {
						t.Error(err)
						return
					}
					sent.Add(1)
					time.Sleep(8 * time.Second)
				}
			})
		}
		group.Wait()
		if n := sent.Load(); n*10 < 9*limit*minutes {
			t.Errorf("%d requests of %d", n, limit*minutes)
		}
	})
}

// TestVerySlowState: each write of the ledger takes longer than a reservation holds. The next
// reservation is longer, so that requests are sent all the same.
func TestVerySlowState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(budgeted("", 60, 0), checkpoint.NewState(slow{stateAt(t.TempDir())}, "s3://bucket/state/"), time.Now, nil)
		began := time.Now()
		for range 10 {
			if err := b.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("10 requests wait %s", took)
		}
	})
}

// slow is a destination whose writes take 12 seconds.
type slow struct{ load.Destination }

func (s slow) Put(ctx context.Context, name string, data []byte, version string) error {
	time.Sleep(12 * time.Second)
	return s.Destination.Put(ctx, name, data, version)
}
