package transport

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// opensAfter is how many attempts in a row must fail to reach the service before the circuit
// opens. The attempts must be of at least two requests. If one attempt in five fails, the circuit
// opens by chance once in 3,000 attempts, for a second.
const opensAfter = 5

// circuit stops a sender and its forks from sending many requests to a service that is
// away. A streak of failed attempts opens the circuit. While it is open, requests wait and
// keep their places in the gate. One request at a time is sent as a probe, after pauses
// that double. The first answer of the service closes the circuit, even an answer that it
// is busy. If no answer comes within Config.Patience, all waiting requests fail with an
// *OutageError. Later requests then fail at once, unless it is time for the next probe.
//
// The failed attempts must be of several requests, and of several forms if several are read. A
// request that fails alone may ask for something that the service cannot give. Heavy requests do
// not count if their caller then asks for less, see Call.Halved.
//
// Each waiting request measures its waiting time itself, so the circuit needs no goroutine.
type circuit struct {
	cfg Config

	mu      sync.Mutex
	forms   int // how many forms the run reads; 0 means one
	streak  streak
	open    bool
	met     bool // the service has answered something since the run began
	reached bool // there was a connection since the run began
	probing bool
	failed  int           // probes that failed since the circuit opened
	next    time.Time     // when the next probe may be sent
	changed chan struct{} // closed when waiting requests should look again
}

// streak describes attempts in a row that failed to reach the service.
type streak struct {
	attempts int
	since    time.Time // when the first attempt failed
	first    *effort   // the request of the first attempt
	several  bool      // attempts of other requests, or other forms, failed too
	last     error
}

func newCircuit(cfg Config) *circuit {
	return &circuit{cfg: cfg, changed: make(chan struct{})}
}

// enter waits while the circuit is open. probe tells that the circuit is still open and that
// this request is the one that tries the service. The caller calls leave after the attempt, or
// giveUp if it sent nothing.
func (c *circuit) enter(ctx context.Context) (probe bool, err error) {
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		probe, pause, changed, err := c.look(time.Now())
		if pause <= 0 || err != nil {
			return probe, err
		}
		if err := wait(ctx, pause, changed); err != nil {
			return false, err
		}
	}
}

// look returns a wait of 0 if a request may be sent now, otherwise how long to wait until
// looking again. The wait also ends when changed is closed. probe is as in enter.
func (c *circuit) look(now time.Time) (probe bool, wait time.Duration, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return false, 0, nil, nil
	}
	if !c.probing && !now.Before(c.next) {
		c.probing = true
		return true, 0, nil, nil
	}
	wait = c.patience() // any duration will do: changed ends the wait
	if c.failed > 0 {
		// The failed attempts may have begun long ago, so one probe has to fail first.
		if wait = c.streak.since.Add(c.patience()).Sub(now); wait <= 0 {
			return false, 0, nil, &OutageError{Since: c.streak.since, Attempts: c.streak.attempts, Last: c.streak.last}
		}
	}
	if !c.probing {
		wait = min(wait, c.next.Sub(now))
	}
	return false, wait, c.changed, nil
}

// state tells whether the circuit is open, whether the service has answered the sender or its
// forks before, even with an error, and how long requests are tried (see patience).
func (c *circuit) state() (open, met bool, patience time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.met, c.patience()
}

// patience returns how long requests are tried: Config.Patience once there was a connection to
// the server, else Config.FirstPatience.
func (c *circuit) patience() time.Duration {
	if c.reached {
		return c.cfg.Patience
	}
	return c.cfg.FirstPatience
}

// giveUp ends a request that was not sent. If it was the probe, another request may be the probe.
func (c *circuit) giveUp(probe bool) {
	if probe {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.probing = false
		c.wake()
	}
}

// leave records the outcome of an attempt of the request e. e.last is the attempt's error.
func (c *circuit) leave(ctx context.Context, probe bool, e *effort, outcome string) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if probe {
		c.probing = false
	}
	ended := outcome == OutcomeCancelled || outcome == "" // the attempt says nothing about the service
	m := meaningOf(e.last)
	c.met = c.met || !ended && m.own
	c.reached = c.reached || !ended && !m.unsent
	s := &c.streak
	switch {
	case ended:
	case e.halved && c.met && m.heavy: // the answer may be too heavy, which a smaller request shows
	case m.answered:
		if c.open {
			c.wake()
			c.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "the service answers again",
				slog.Duration("after", now.Sub(s.since).Round(time.Millisecond)), slog.Int("attempts", s.attempts))
		}
		c.streak, c.open = streak{}, false
	case m.isAbsence(c.met):
		if s.attempts++; s.attempts == 1 {
			s.since, s.first = now, e
		}
		s.several = s.several || e != s.first && (c.forms <= 1 || e.form != s.first.form)
		s.last = e.last
	}
	switch {
	case c.open && probe:
		if !ended {
			c.failed++
		}
		c.next = now.Add(c.pause())
		c.wake()
	case !c.open && s.attempts >= opensAfter && s.several:
		c.open, c.failed = true, 0
		pause := c.pause()
		c.next = now.Add(pause)
		c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "the service does not answer; formetl goes on asking, one request at a time, until it answers or formetl gives up",
			slog.Time("since", s.since), slog.Int("attempts", s.attempts), slog.Duration("pause", pause.Round(time.Millisecond)),
			slog.Time("gives_up_at", s.since.Add(c.patience())), slog.String("error", c.cfg.Key.Redact(s.last.Error())))
	}
}

// wake lets all waiting requests look again. The gate bounds how many requests wait.
func (c *circuit) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// pause returns a random time between half and the whole of an interval. The
// interval doubles with every failed probe, up to Config.BackoffMax.
func (c *circuit) pause() time.Duration {
	whole := 2 * c.cfg.BackoffMin
	for i := 0; i < c.failed && whole < c.cfg.BackoffMax; i++ {
		whole *= 2
	}
	whole = min(whole, c.cfg.BackoffMax)
	return whole/2 + rand.N(whole/2+1)
}
