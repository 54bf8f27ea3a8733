package extract

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
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

// address is the whole URL of the call. It holds the key: it goes to the
// transport and nowhere else.
func (c *Client) address(r call) (string, error) {
	u, err := c.endpoint(r.form, r.path)
	if err != nil {
		return "", err
	}
	u.RawQuery = r.query()
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "fs_api_key=" + escape(c.cfg.Key.value)
	return u.String(), nil
}

// roundTrip sends the call until an answer decodes, trying again what may
// succeed later.
func (c *Client) roundTrip(ctx context.Context, r call, into receiver) error {
	address, err := c.address(r)
	if err != nil {
		return err
	}
	e := &effort{form: r.form, repeatable: r.method != http.MethodPost}
	err = c.retry(ctx, e, func() error {
		return c.attempt(ctx, r, e, address, into)
	}, func(pause time.Duration) {
		if c.circuit.isOpen() {
			return // that was told, and is nothing of this request
		}
		c.log.LogAttrs(ctx, slog.LevelInfo, "request is tried again",
			slog.String("transaction", r.transaction), slog.String("form", r.form),
			slog.Int("attempt", e.attempts), slog.Duration("pause", pause.Round(time.Millisecond)), slog.String("error", c.cfg.Key.Redact(e.last.Error())))
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &RequestError{Transaction: r.transaction, Form: r.form, Detail: c.cfg.Key.Redact(r.detail()), Attempts: e.attempts, Err: c.verdict(e, err)}
}

// verdict says what an answer that could not be read amounts to, now that it is
// not asked for again.
func (c *Client) verdict(e *effort, err error) error {
	a, ok := err.(*AnswerError) //nolint:errorlint // an outage that wraps one is an outage
	if !ok {
		return err
	}
	if e.samePage() && !c.circuit.wasMet() {
		return &NotServiceError{Tries: e.unread, Err: a}
	}
	if e.repeatable && (e.unread < min(doubtfulTries, c.cfg.Retries+1) || a.isPage() && !c.circuit.wasMet()) {
		a.varies = true // other attempts failed otherwise: it did not come each time
	}
	return a
}

// attempt sends the call once and decodes what comes.
func (c *Client) attempt(ctx context.Context, r call, e *effort, address string, into receiver) error {
	falls, err := c.gate.enter(ctx)
	if err != nil {
		return err
	}
	outcome := ""
	defer func() { c.gate.leave(falls, outcome) }()
	probe, err := c.admit(ctx)
	if err != nil {
		return err
	}
	defer func() { c.circuit.leave(ctx, probe, e, outcome) }()
	e.attempts++
	c.stats.sent(r.transaction, e.attempts)
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start, bytes := time.Now(), 0
	a, err := c.send(limited, r.method, address, into)
	if err == nil {
		bytes = a.size
		err = c.interpret(a, into.decode(a.contentType))
	}
	took := time.Since(start)
	e.spent += took
	if err != nil && ctx.Err() != nil {
		err, outcome = context.Cause(ctx), OutcomeCancelled
	} else {
		outcome = outcomeOf(err, a.status)
	}
	e.last = err
	if a, ok := errors.AsType[*AnswerError](err); ok {
		e.unreadable(a)
	}
	c.stats.came(outcome, bytes)
	if c.log.Enabled(ctx, slog.LevelDebug) {
		c.log.LogAttrs(ctx, slog.LevelDebug, "request",
			slog.String("transaction", r.transaction), slog.String("form", r.form), slog.String("parameters", c.cfg.Key.Redact(r.detail())),
			slog.Int("attempt", e.attempts), slog.Int("status", a.status), slog.Int("bytes", a.size),
			slog.Duration("duration", took.Round(time.Microsecond)), slog.Bool("ok", err == nil), slog.String("outcome", outcome))
	}
	return err
}

// admit waits until circuit and budget let a request go that has its place.
func (c *Client) admit(ctx context.Context) (probe bool, err error) {
	for {
		probe, err := c.circuit.enter(ctx)
		if err != nil || c.cfg.Budget == nil {
			return probe, err
		}
		if err := c.cfg.Budget.Reserve(ctx); err != nil {
			c.circuit.giveUp(probe)
			return false, err
		}
		if probe || !c.circuit.isOpen() {
			return probe, nil
		}
		// It opened meanwhile. Sent later, the request would not be in the
		// minute that it was booked in, so the booking is given up.
	}
}

// interpret lets the envelope decide first, then the HTTP status. err is what
// the decoder said.
func (c *Client) interpret(a answer, err error) error {
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
	if e, ok := errors.AsType[*AnswerError](err); ok {
		if e.status = a.status; a.status != http.StatusOK && e.fault == faultEmpty {
			e.fault = faultGarbled // a web server's way to say that there is nothing
		}
	}
	return err
}
