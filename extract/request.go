package extract

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The transactions, as the specification names them (section 4).
const (
	copyForm   = "Copy Form"
	getForms   = "Get Forms"
	getStatus  = "Get Form Status"
	getPublish = "Get Publish"
	getResults = "Get Results"
	getCount   = "Get Results Count"
)

const (
	// patience is the most time that one request may take with all its
	// attempts and pauses.
	patience = 2 * time.Minute
	// doubtfulTries bounds the attempts after answers that are most likely
	// final (error 0, an answer that is not XML) but may be a passing fault:
	// a cut answer looks like a malformed one.
	doubtfulTries = 3
)

// parameter is one name and value; a presence-only parameter has no value.
type parameter struct {
	name, value string
	bare        bool
}

// call is one transaction on one form.
type call struct {
	method      string
	transaction string
	form        string
	path        string // the transaction's name in the path
	parameters  []parameter
}

// query encodes the parameters. Values are percent-encoded throughout, a
// space as %20 (specification, section 4).
func (r call) query() string {
	var b strings.Builder
	for i, p := range r.parameters {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(escape(p.name))
		if !p.bare {
			b.WriteByte('=')
			b.WriteString(escape(p.value))
		}
	}
	return b.String()
}

// detail shows the parameters to people.
func (r call) detail() string {
	var b strings.Builder
	for i, p := range r.parameters {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.name)
		if !p.bare {
			b.WriteByte('=')
			b.WriteString(p.value)
		}
	}
	return b.String()
}

// roundTrip sends the call until an answer decodes, trying again what may
// succeed later. decode takes over the body.
func (c *Client) roundTrip(ctx context.Context, r call, decode func(answer) error) error {
	u, err := c.endpoint(r.form, r.path)
	if err != nil {
		return err
	}
	u.RawQuery = r.query()
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "fs_api_key=" + escape(c.cfg.Key.value)

	attempts, doubtful := 0, 0
	var last error
	once := func() (struct{}, error) {
		attempts++
		last = c.attempt(ctx, r, attempts, u.String(), decode)
		if isDoubtful(last) {
			doubtful++
		}
		if r.method == http.MethodPost && !isBusy(last) {
			// What a lost answer's request did is unknown: a second copy would be worse than an error.
			return struct{}{}, permanent(last)
		}
		return struct{}{}, forBackoff(last, doubtful)
	}
	_, err = backoff.Retry(ctx, once,
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: c.cfg.BackoffMin, MaxInterval: c.cfg.BackoffMax, Multiplier: 2, RandomizationFactor: 1,
		}),
		backoff.WithMaxTries(uint(c.cfg.Retries)+1), //nolint:gosec // never negative, see NewClient
		backoff.WithMaxElapsedTime(patience),
		backoff.WithNotify(func(_ error, pause time.Duration) {
			c.log.LogAttrs(ctx, slog.LevelInfo, "request is tried again",
				slog.String("transaction", r.transaction), slog.String("form", r.form),
				slog.Int("attempt", attempts), slog.Duration("pause", pause.Round(time.Millisecond)), slog.String("error", c.cfg.Key.Redact(last.Error())))
		}))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &RequestError{Transaction: r.transaction, Form: r.form, Detail: c.cfg.Key.Redact(r.detail()), Attempts: attempts, Err: last}
}

// attempt sends the call once and decodes what comes.
func (c *Client) attempt(ctx context.Context, r call, n int, address string, decode func(answer) error) error {
	if err := c.gate.enter(ctx); err != nil {
		return err
	}
	busy := false
	defer func() { c.gate.leave(busy) }()
	if c.cfg.Budget != nil {
		if err := c.cfg.Budget.Reserve(ctx); err != nil {
			return err
		}
	}
	c.stats.add(r.transaction, n)
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start := time.Now()
	a, err := c.send(limited, r.method, address)
	if err == nil {
		c.stats.bytes.Add(int64(len(a.body)))
		err = c.interpret(a, decode)
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	busy = isBusy(err)
	c.log.LogAttrs(ctx, slog.LevelDebug, "request",
		slog.String("transaction", r.transaction), slog.String("form", r.form), slog.String("parameters", c.cfg.Key.Redact(r.detail())),
		slog.Int("attempt", n), slog.Int("status", a.status), slog.Int("bytes", len(a.body)),
		slog.Duration("took", time.Since(start).Round(time.Microsecond)), slog.Bool("ok", err == nil))
	return err
}

// interpret lets the envelope decide first, then the HTTP status.
func (c *Client) interpret(a answer, decode func(answer) error) error {
	err := decode(a)
	if err == nil {
		return nil
	}
	if s, ok := errors.AsType[*ServiceError](err); ok {
		s.Status, s.RetryAfter = a.status, a.retryAfter
		s.Message = c.cfg.Key.Redact(s.Message)
		return s
	}
	if a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests {
		return &StatusError{Status: a.status, RetryAfter: a.retryAfter}
	}
	if e, ok := errors.AsType[*AnswerError](err); ok && a.status != http.StatusOK {
		return &AnswerError{Offset: e.Offset, Problem: fmt.Sprintf("%s (HTTP status %d): is the base URL the service's?", e.Problem, a.status)}
	}
	return err
}

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// forBackoff tells the retry library whether and when to try again.
func forBackoff(err error, doubtful int) error {
	switch {
	case err == nil:
		return nil
	case isDoubtful(err) && doubtful < doubtfulTries:
		return err
	case isDoubtful(err) || !Temporary(err):
		return backoff.Permanent(err)
	}
	if _, ok := errors.AsType[*BudgetError](err); ok {
		return backoff.Permanent(err) // it refills in minutes or hours: the run stops and comes back
	}
	if pause := retryAfter(err); pause > 0 {
		return &backoff.RetryAfterError{Duration: pause}
	}
	return err
}

func retryAfter(err error) time.Duration {
	if s, ok := errors.AsType[*ServiceError](err); ok {
		return s.RetryAfter
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.RetryAfter
	}
	return 0
}

func isDoubtful(err error) bool {
	if s, ok := errors.AsType[*ServiceError](err); ok {
		return s.Code == CodeUnexpected && !s.Temporary()
	}
	_, ok := errors.AsType[*AnswerError](err)
	return ok
}

// isBusy tells whether the service had no room, as opposed to having failed.
func isBusy(err error) bool {
	if s, ok := errors.AsType[*ServiceError](err); ok {
		return s.Temporary()
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && (s.Status == http.StatusTooManyRequests || s.Status == http.StatusServiceUnavailable)
}
