package extract

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// opensAfter is how many attempts in a row, of at least two requests, find the
// service not there until the circuit opens. At a service that fails for one
// attempt in five that happens by chance once in 3,000 attempts, and costs a
// pause of a second.
const opensAfter = 5

// circuit keeps the requests of a client and its forks from hammering a
// service that is not there. After an unbroken streak of failures it is open:
// requests wait in it, with their places in the gate, and only one of them at
// a time is sent as a probe, after pauses that double. The first answer that
// is the service's own, be it that it is busy, closes it and all go on. If it
// does not come within patience, all who wait fail with an *OutageError, and
// who comes later fails at once unless it is time for the next probe.
//
// The streak must be of several requests, and where several forms are read of
// several forms: one that fails alone, again and again, may ask for what the
// service cannot give, and has its own retries.
//
// The common libraries for circuits fail fast while theirs is open; a run has
// nothing better to do than to wait, so this one lets its callers wait.
//
// It has no goroutine of its own: each who waits keeps the time.
type circuit struct {
	shortest, longest time.Duration // the first pause and the last, at most
	patience          time.Duration // how long an outage is waited for
	log               *slog.Logger
	key               Secret

	mu      sync.Mutex
	streak  int
	since   time.Time // the first failure of the streak
	first   *effort   // whose it was
	several bool      // others failed too
	forms   int       // that are read; 0 is one
	last    error
	open    bool
	met     bool // the service has answered something since the run began
	probing bool
	failed  int           // probes, since it opened
	next    time.Time     // when the next probe may be sent
	changed chan struct{} // closed when those who wait should look again
}

func newCircuit(cfg Config) *circuit {
	return &circuit{
		shortest: 2 * cfg.BackoffMin, longest: cfg.BackoffMax, patience: cmp.Or(cfg.Patience, patience),
		log: cfg.Logger, key: cfg.Key, changed: make(chan struct{}),
	}
}

// enter waits while the circuit is open. probe tells that it still is and the
// request is the one to try. Who enters calls leave, or giveUp where nothing
// was sent.
func (c *circuit) enter(ctx context.Context) (probe bool, err error) {
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		probe, wait, changed, err := c.look(time.Now())
		if wait <= 0 || err != nil {
			return probe, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look tells whether a request may go now, or how long to wait until it is
// worth while to look again, if nothing changes before.
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
	wait = c.patience // any time: changed comes before, or it is looked again
	if c.failed > 0 {
		// Not before a probe has failed: the streak may have begun long ago.
		if wait = c.since.Add(c.patience).Sub(now); wait <= 0 {
			return false, 0, nil, &OutageError{Since: c.since, Attempts: c.streak, Last: c.last}
		}
	}
	if !c.probing {
		wait = min(wait, c.next.Sub(now))
	}
	return false, wait, c.changed, nil
}

// Reads tells how many forms are read by the client and its forks. Where there
// are several, one that fails alone is not taken for an outage.
func (c *Client) Reads(forms int) {
	c.circuit.mu.Lock()
	defer c.circuit.mu.Unlock()
	c.circuit.forms = forms
}

func (c *circuit) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// wasMet tells whether the service has answered anything at all to the client
// and its forks, were it an error.
func (c *circuit) wasMet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met
}

// giveUp lets another be the probe: this one was not sent.
func (c *circuit) giveUp(probe bool) {
	if probe {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.probing = false
		c.wake()
	}
}

// leave takes in what became of an attempt of e, whose error is e.last.
func (c *circuit) leave(ctx context.Context, probe bool, e *effort, outcome string) {
	if report := c.note(probe, e, outcome, time.Now()); report != nil {
		report(ctx)
	}
}

// note returns what there is to log.
func (c *circuit) note(probe bool, e *effort, outcome string, now time.Time) (report func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := outcome == OutcomeCancelled || outcome == "" // tells nothing
	c.met = c.met || !ended && isOwn(e.last)
	switch {
	case ended:
	case isAnswer(e.last):
		return c.close(probe, now)
	case isAbsence(e.last, c.met):
		if c.streak++; c.streak == 1 {
			c.since, c.first, c.several = now, e, false
		}
		c.several = c.several || e != c.first && (c.forms <= 1 || e.form != c.first.form)
		c.last = e.last
	}
	if probe {
		c.probing = false
	}
	switch {
	case c.open && probe:
		if !ended {
			c.failed++
		}
		c.next = now.Add(c.pause())
		c.wake()
	case !c.open && c.streak >= opensAfter && c.several:
		c.open, c.failed = true, 0
		c.next = now.Add(c.pause())
		return c.opened(c.next.Sub(now))
	}
	return nil
}

// close ends the streak, and the outage if there was one.
func (c *circuit) close(probe bool, now time.Time) (report func(context.Context)) {
	attempts, after, was := c.streak, now.Sub(c.since), c.open
	c.streak, c.first, c.last, c.open = 0, nil, nil, false
	if probe {
		c.probing = false
	}
	if !was {
		return nil
	}
	c.wake()
	return func(ctx context.Context) {
		c.log.LogAttrs(ctx, slog.LevelInfo, "the service is there again",
			slog.Duration("after", after.Round(time.Millisecond)), slog.Int("attempts", attempts))
	}
}

// opened is the report of an outage.
func (c *circuit) opened(pause time.Duration) (report func(context.Context)) {
	since, attempts, last := c.since, c.streak, c.last
	return func(ctx context.Context) {
		c.log.LogAttrs(ctx, slog.LevelWarn, "the service is not there: all requests wait while one at a time tries it",
			slog.Time("since", since), slog.Int("attempts", attempts), slog.Duration("pause", pause.Round(time.Millisecond)),
			slog.Time("until", since.Add(c.patience)), slog.String("error", c.key.Redact(last.Error())))
	}
}

// wake lets all who wait look again. They are no more than have a place.
func (c *circuit) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// pause is drawn between half and the whole of a time that doubles with every
// probe that failed.
func (c *circuit) pause() time.Duration {
	whole := c.shortest
	for i := 0; i < c.failed && whole < c.longest; i++ {
		whole *= 2
	}
	whole = min(whole, c.longest)
	return whole/2 + rand.N(whole/2+1)
}

// isAnswer tells whether an attempt brought an answer of the service's own, if
// only that it has no room.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*ServiceError](err); ok {
		return true
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && !isAbsence(s, true)
}

// isOwn tells whether an attempt brought something that the service itself has
// sent, were it damaged.
func isOwn(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*ServiceError](err); ok {
		return true
	}
	a, ok := errors.AsType[*AnswerError](err)
	return ok && a.ours
}

// isAbsence tells whether an attempt failed because the service was not there:
// the network, a timeout, HTTP status 5xx. A proxy says 503 for a service that
// is not there, and no service says it without a word of its own or a
// Retry-After. A page of somebody else, or nothing at all, says the same where
// the service was met before; where it never was the base URL may be wrong, and
// waiting would not help. What is wrong with the answer or for good is no
// absence.
func isAbsence(err error, met bool) bool {
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final
	}
	if a, ok := errors.AsType[*AnswerError](err); ok {
		return met && (a.isPage() || a.fault == faultEmpty)
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && s.Status >= http.StatusInternalServerError && s.RetryAfter == 0
}
