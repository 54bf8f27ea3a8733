package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

// outage is a service that is not there until it ends. An attempt takes some
// time to fail.
type outage struct {
	t      *testing.T
	client *v1.Client // of which it looks whether it knows
	ends   atomic.Int64

	sent, probes, trying, running, peak atomic.Int64
}

// downUntil makes an outage that ends then.
func downUntil(t *testing.T, ends time.Time) *outage {
	o := &outage{t: t}
	o.ends.Store(ends.UnixNano())
	return o
}

func (o *outage) end() time.Time { return time.Unix(0, o.ends.Load()) }

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	n := o.sent.Add(1)
	transport.Raise(&o.peak, o.running.Add(1))
	defer o.running.Add(-1)
	if o.client != nil && o.client.IsOpen() {
		o.probes.Add(1)
		if o.trying.Add(1) > 1 {
			o.t.Error("two probes are under way")
		}
		defer o.trying.Add(-1)
	}
	select {
	case <-time.After(50*time.Millisecond + time.Duration(n)*time.Microsecond):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if time.Now().Before(o.end()) {
		return nil, errors.New("connection refused")
	}
	return extracttest.Respond(200, countOf7), nil
}

// countingBudget counts bookings.
type countingBudget struct{ booked atomic.Int64 }

func (b *countingBudget) Reserve(context.Context) error { b.booked.Add(1); return nil }

// TestOutageIsWaitedOut by eight requests of eight forks that begin while the
// service is away for a minute: few attempts, one probe at a time, nothing
// booked but what is sent, and all go on within one pause of its return. Eight
// clients, which do not know of each other, send several times as much.
func TestOutageIsWaitedOut(t *testing.T) {
	const requests, away, most = 8, time.Minute, 24
	run := func(t *testing.T, together bool) (sent int64, log string) {
		budget, logged := &countingBudget{}, &lockedBuffer{}
		o := downUntil(t, time.Now().Add(away))
		client := func() *v1.Client {
			return extracttest.Answering(t, transport.Canary, o.RoundTrip, func(cfg *transport.Config) {
				cfg.Concurrency, cfg.Budget, cfg.Retries = requests, budget, 1000
				cfg.Logger = slog.New(slog.NewJSONHandler(logged, nil))
			})
		}
		shared := client()
		if together {
			o.client = shared
		}
		var group sync.WaitGroup
		for range requests {
			c := shared.Fork()
			if !together {
				c = client()
			}
			group.Go(func() {
				if err := countOnly(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if late := time.Since(o.end()); together && late > longestPause(t)+time.Second {
			t.Errorf("all went on %s after the service was there again", late)
		}
		if budget.booked.Load() != o.sent.Load() {
			t.Errorf("%d requests booked, %d sent", budget.booked.Load(), o.sent.Load())
		}
		return o.sent.Load() - requests, logged.String() // but the good ones
	}
	synctest.Test(t, func(t *testing.T) {
		sent, log := run(t, true)
		if sent > most {
			t.Errorf("%d attempts failed in an outage of %s, want at most %d", sent, away, most)
		}
		for _, line := range []string{`"level":"WARN","msg":"the service does not answer`, `"level":"INFO","msg":"the service answers again"`} {
			if strings.Count(log, line) != 1 {
				t.Errorf("%s was logged %d times in\n%s", line, strings.Count(log, line), log)
			}
		}
		alone, _ := run(t, false)
		t.Logf("%d attempts failed, %d without a common circuit", sent, alone)
		if alone < 2*sent {
			t.Errorf("%d attempts failed, and no more than %d without a common circuit", sent, alone)
		}
	})
}

// longestPause is the longest pause of a client that sets none.
func longestPause(t *testing.T) time.Duration {
	return extracttest.Answering(t, transport.Canary, nil, nil).Settings().BackoffMax
}

// TestOutageEnds all requests at once when it has lasted for the patience, and
// whoever comes later but for a probe now and then.
func TestOutageEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := downUntil(t, time.Now().Add(time.Hour))
		c := extracttest.Answering(t, transport.Canary, o.RoundTrip, func(cfg *transport.Config) { cfg.Retries = 1000 })
		o.client = c
		start := time.Now()
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				err := countOnly(t.Context(), c)
				e, ok := errors.AsType[*transport.OutageError](err)
				if !ok || !errors.As(err, new(*transport.NetworkError)) {
					t.Errorf("%v, want an *OutageError and the last attempt's", err)
					return
				}
				if took := time.Since(start); took < transport.DefaultPatience || took > transport.DefaultPatience+time.Second {
					t.Errorf("a request ended after %s", took)
				}
				if e.Attempts < transport.OpensAfter || e.Since.Sub(start) > time.Second || !transport.Temporary(err) ||
					!strings.Contains(err.Error(), e.Since.Format(time.RFC3339)) || !strings.Contains(err.Error(), " failed: the service has not answered since") {
					t.Errorf("%+v: %v", e, err)
				}
			})
		}
		group.Wait()
		if sent := o.sent.Load(); sent > 25 {
			t.Errorf("%d attempts", sent)
		}
		transport.HidesKey(t, "error", fmt.Sprint(countOnly(t.Context(), c)))

		// The other forms of the run.
		start, sent := time.Now(), o.sent.Load()
		for range 500 {
			if err := countOnly(t.Context(), c); !errors.As(err, new(*transport.OutageError)) {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > time.Second || o.sent.Load() > sent+1 {
			t.Errorf("500 requests took %s and %d attempts", took, o.sent.Load()-sent)
		}
		time.Sleep(c.Settings().BackoffMax) // virtual
		if _ = countOnly(t.Context(), c); o.sent.Load() < sent+1 {
			t.Error("nobody looks whether the service answers again")
		}
		time.Sleep(time.Until(o.end()))
		if err := countOnly(t.Context(), c); err != nil || c.IsOpen() {
			t.Errorf("when it is: %v", err)
		}
	})
}

// TestCircuitOpensAtTheBudget: a request that waits for its booking when the
// circuit opens is not sent before it closes, and then is booked again.
func TestCircuitOpensAtTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := downUntil(t, time.Now())
		c := extracttest.Answering(t, transport.Canary, o.RoundTrip, func(cfg *transport.Config) { cfg.Budget = slowBudget(time.Minute) })
		done := make(chan error)
		go func() { done <- countOnly(t.Context(), c) }()
		time.Sleep(59 * time.Second) // virtual
		opened(t, c)
		c.SetProbing() // somebody else
		time.Sleep(30 * time.Second)
		if o.sent.Load() != 0 {
			t.Error("it was sent while the circuit is open")
		}
		c.Came(t.Context(), true, nil, transport.OutcomeOK)
		start := time.Now()
		if err := <-done; err != nil || time.Since(start) < time.Minute {
			t.Errorf("sent after %s, %v", time.Since(start), err)
		}
	})
}

// opened gives the client a streak that opens its circuit.
func opened(t *testing.T, c *v1.Client) {
	t.Helper()
	for range transport.OpensAfter {
		c.Came(t.Context(), false, &transport.NetworkError{Problem: "refused"}, transport.OutcomeFailed)
	}
	if !c.IsOpen() {
		t.Fatal("it is not open")
	}
}

// TestLateAnswerCloses: an answer to what was sent before the outage began
// frees those who wait, too.
func TestLateAnswerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := extracttest.Answering(t, transport.Canary, func(*http.Request) (*http.Response, error) { return extracttest.Respond(200, countOf7), nil }, nil)
		opened(t, c)
		start, done := time.Now(), make(chan error)
		go func() { done <- countOnly(t.Context(), c) }()
		synctest.Wait()
		c.Came(t.Context(), false, nil, transport.OutcomeOK)
		if err := <-done; err != nil || time.Since(start) != 0 {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// TestOutageIsNotToldUntried: where one request has failed alone for minutes,
// another's first failure makes the streak one of several; it is tried once
// more before anybody is told of an outage.
func TestOutageIsNotToldUntried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := 0
		c := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
			if !strings.Contains(r.URL.Path, "broken") {
				if healthy++; healthy > 1 {
					return extracttest.Respond(200, countOf7), nil
				}
			}
			time.Sleep(20 * time.Second) // virtual
			return nil, errors.New("connection reset")
		}, func(cfg *transport.Config) { cfg.Retries = 1000 })
		start := time.Now()
		if _, err := c.Count(t.Context(), "broken", extract.CountQuery{}); err == nil || c.IsOpen() {
			t.Errorf("open %v: %v", c.IsOpen(), err)
		}
		time.Sleep(time.Until(start.Add(transport.DefaultPatience + time.Minute)))
		if err := countOnly(t.Context(), c); err != nil || healthy != 2 {
			t.Errorf("%d attempts: %v", healthy, err)
		}
	})
}

// TestCancelInAnOutage is prompt wherever the request waits, and leaves the
// probe to others.
func TestCancelInAnOutage(t *testing.T) {
	hang := extracttest.RoundTrip(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
	for _, tc := range []struct {
		name   string
		after  time.Duration
		others int // requests that came before
		budget transport.Budget
	}{
		{"before the next probe", 100 * time.Millisecond, 0, nil},
		{"as the probe", 2 * time.Second, 0, nil},
		{"while another is the probe", 2 * time.Second, 1, nil},
		{"as the probe, at the budget", 2 * time.Second, 0, slowBudget(time.Hour)},
		{"at the gate", 2 * time.Second, transport.DefaultConcurrency, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := extracttest.Answering(t, transport.Canary, hang, func(cfg *transport.Config) { cfg.Budget = tc.budget })
				opened(t, c)
				background, end := context.WithCancel(t.Context())
				for range tc.others {
					go func() { _ = countOnly(background, c) }()
				}
				time.Sleep(time.Millisecond) // virtual
				stopsAtOnce(t, c, tc.after)
				end()
				synctest.Wait()
				if c.IsProbing() || !c.IsOpen() || c.FailedProbes() != 0 || places(c) != 0 {
					t.Errorf("probing %v, open %v, %d failed probes, %d places leaked", c.IsProbing(), c.IsOpen(), c.FailedProbes(), places(c))
				}
			})
		})
	}
}

// sevenRequests is a budget of so many.
type sevenRequests struct{ used atomic.Int64 }

func (b *sevenRequests) Reserve(context.Context) error {
	if b.used.Add(1) > 7 {
		return &transport.BudgetError{Limit: 7, Per: 24 * time.Hour}
	}
	return nil
}

// TestBudgetEndsAnOutage: a used-up budget is told as such, to each.
func TestBudgetEndsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := downUntil(t, time.Now().Add(time.Hour))
		c := extracttest.Answering(t, transport.Canary, o.RoundTrip, func(cfg *transport.Config) {
			cfg.Budget = new(sevenRequests)
		})
		o.client = c
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if err := countOnly(t.Context(), c); !errors.As(err, new(*transport.BudgetError)) {
					t.Error(err)
				}
			})
		}
		start := time.Now()
		group.Wait()
		if took := time.Since(start); took > 30*time.Second || o.sent.Load() != 7 || c.IsProbing() {
			t.Errorf("after %s and %d attempts, probing %v", took, o.sent.Load(), c.IsProbing())
		}
	})
}

// TestFlapping lets requests of all kinds of patience meet a service that comes
// and goes: nobody waits for ever, no place and no probe is lost, never more
// than the bound are under way, and while it is known to be away only one.
func TestFlapping(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			const most = 4
			random := rand.New(rand.NewPCG(seed, 7))
			o := downUntil(t, time.Now())
			c := extracttest.Answering(t, transport.Canary, o.RoundTrip, func(cfg *transport.Config) { cfg.Concurrency = most })
			o.client = c
			var group sync.WaitGroup
			for range 600 {
				arrives, waits := time.Duration(random.IntN(600_000))*time.Millisecond, time.Duration(random.IntN(400_000))*time.Millisecond
				group.Go(func() {
					time.Sleep(arrives) // virtual
					ctx, cancel := context.WithTimeout(t.Context(), waits)
					defer cancel()
					err := countOnly(ctx, c.Fork())
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !transport.Temporary(err) {
						t.Error(err)
					}
				})
			}
			for range 12 {
				time.Sleep(time.Duration(random.IntN(60_000)) * time.Millisecond)
				synctest.Wait()
				o.ends.Store(time.Now().Add(time.Duration(random.IntN(40_000)) * time.Millisecond).UnixNano())
			}
			group.Wait()
			if o.peak.Load() > most || places(c) != 0 || waiters(c) != 0 || c.IsProbing() {
				t.Errorf("seed %d: %d at once, %d places and %d waiters left, probing %v", seed, o.peak.Load(), places(c), waiters(c), c.IsProbing())
			}
			if o.probes.Load() == 0 {
				t.Errorf("seed %d: the circuit never opened", seed)
			}
			if sum := attempts(c); sum != o.sent.Load() {
				t.Errorf("seed %d: %d attempts counted, %d sent", seed, sum, o.sent.Load())
			}
		})
	}
}
