package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/klauspost/compress/gzhttp"
)

// Defaults of Config.
const (
	DefaultConcurrency   = 4
	DefaultTimeout       = 30 * time.Second
	DefaultRetries       = 8
	DefaultPatience      = 2 * time.Minute
	DefaultFirstPatience = 30 * time.Second
)

// Config says which account a Sender asks, and how it sends requests.
type Config struct {
	BaseURL   string // HTTPS, or plain HTTP to a loopback address
	Account   string // the account's URL extension
	AllowHTTP bool   // plain HTTP to other hosts too
	Key       Secret // the API key; for API v2 the account's token
	ListForms string // the command that lists the forms, for hints; "" if there is none

	// Unsure tells that the service may not know the requests' addresses. Until it has answered
	// something, a foreign page with an HTTP status of 4xx is final, because it comes each time.
	Unsure bool

	Timeout     time.Duration // bound of the time of one attempt; 0 means DefaultTimeout
	Retries     int           // most attempts after the first; negative means DefaultRetries
	Concurrency int           // most requests under way at once; 0 means DefaultConcurrency
	Budget      Budget        // asked before every attempt; nil means no budget

	// BackoffMin is the mean pause after the first attempt. The mean pause doubles
	// with each attempt, up to BackoffMax. Each pause is random, between 0 and
	// twice the mean. Zeros mean 500 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// Patience bounds the time of one request: its attempts and the pauses
	// between them. It also bounds how long requests wait for the end of an
	// outage. Waits at the gate, for the budget and in an outage do not count.
	// 0 means two minutes.
	Patience time.Duration
	// FirstPatience takes the place of Patience until the first connection to the server.
	// 0 means Patience if that is given, otherwise 30 seconds.
	FirstPatience time.Duration

	Logger    *slog.Logger      // nil logs nothing
	Contact   func(Contact)     // called with news of requests, from several goroutines; may be nil
	Transport http.RoundTripper // nil means a keep-alive transport of the sender's own
	UserAgent string
}

// Contact is news of a request: it is sent, or answered, or will be tried again.
type Contact struct {
	Host     string
	Answered bool          // the service has answered, even if only to say that it is busy
	Reason   string        // why the request is tried again
	Rest     time.Duration // how long it is tried; 0: a few times only
}

// Dialect is how requests to one generation of the service are addressed. Packages extract/v1 and
// extract/v2 each define theirs.
type Dialect struct {
	Root         string // the beginning of all paths, such as /api/v2
	KeyParameter string // query parameter of the key; "" sends it in the header Authorization
	Accept       string // the value of the header Accept
}

// Budget bounds requests. The sender asks it before every attempt of a request.
type Budget interface {
	// Reserve waits until one more request may be sent. It returns the error of ctx, a *BudgetError
	// if the budget is used up, or the error of the file or store that keeps the budget.
	Reserve(ctx context.Context) error
}

// BudgetMinute is how long a request counts for a budget per minute. It is a second longer than
// a minute, because requests reach the service with varying delays after they were reserved.
const BudgetMinute = time.Minute + time.Second

// Kind tells what a request asks for. Requests are counted by Kind, see Requests.
type Kind uint8

// The kinds of requests.
const (
	KindResults Kind = iota // a page of results
	KindCount               // a count of results
	KindOther
	KindFile // an uploaded file
	kinds
)

// maxBytes is the most bytes of an answer, decompressed. Decoders count bytes in int32, and a
// byte that they replace by U+FFFD becomes three. A hundred results with 1,600 values of a kilobyte
// each stay well below.
const maxBytes = 256 << 20

// Call is one request: what to send, and how to read its answer.
type Call struct {
	Method      string // "" is GET; other requests are not repeated if they may be done
	Kind        Kind
	Transaction string // the transaction's name in the specification
	Form        string // "" for GetForms alone
	Path        string // the path below the form, such as results; "" for the form itself
	Parameters  Parameters
	Asked       string // see RequestError.Asked; the sender redacts the API key in it
	Halved      bool   // the caller asks for less if the answer is too heavy, see TooHeavy

	Body *[]byte // the buffer that answers are read into
	// Decode decodes the answer in Body. It returns a *ServiceError if the service
	// answered with an error, and an *AnswerError if the answer cannot be read.
	Decode func(Header) error

	url  string   // the address with the API key, so only the server may see it
	file *receipt // set for an uploaded file, whose address has no key
}

// GetForms is the only transaction that concerns no form.
const GetForms = "Get Forms"

// Header holds what Call.Decode needs of an answer besides its body.
type Header struct {
	Status      int
	ContentType string
	RetryAfter  time.Duration // from the Retry-After header, 0 without one
	Fields      http.Header   // all header fields; nil without an answer
}

// Sender sends requests to one server for one account. It is safe for concurrent
// use.
type Sender struct {
	cfg     Config
	dialect Dialect
	base    *url.URL
	forms   string            // the address of the account's forms
	most    int64             // the most bytes of an answer
	http    http.RoundTripper // cfg.Transport, with answers decompressed
	gate    *gate
	circuit *circuit
	numbers *numbers
	dated   *atomic.Pointer[dated]

	elsewhere http.RoundTripper // for files on other hosts, without a proxy: it connects to public addresses only
	proxy     func(*http.Request) (*url.URL, error)
}

// dated is the date that the service gave an answer (theirs), and when it came by our clock (ours).
type dated struct{ theirs, ours time.Time }

// Clocks returns the date that the service gave its last answer, and when that answer came by our
// clock. Both are zero if answers carry no date. The date of an answer from a cache does not count.
func (s *Sender) Clocks() (theirs, ours time.Time) {
	if d := s.dated.Load(); d != nil {
		return d.theirs, d.ours
	}
	return time.Time{}, time.Time{}
}

// NewSender checks the configuration and returns a sender. It sends nothing.
func NewSender(cfg Config, dialect Dialect) (*Sender, error) {
	base, err := ParseBaseURL(cfg.BaseURL, cfg.AllowHTTP)
	if err != nil {
		return nil, &Error{Code: 78, Problem: cfg.Key.Redact(err.Error())}
	}
	if noSegment(cfg.Account) {
		return nil, &Error{Code: 78, Problem: fmt.Sprintf("%q is not an account; give its name, which comes after the host in the address of a form: https://HOST/ACCOUNT/FORM", cfg.Account)}
	}
	if cfg.Key.IsZero() {
		return nil, &Error{Code: 78, Problem: "no API key; set the variable FORMETL_API_KEY, or give --api-key-file FILE, a file that holds only the key"}
	}
	if cfg.Retries < 0 {
		cfg.Retries = DefaultRetries
	}
	cfg.Timeout = cmp.Or(max(0, cfg.Timeout), DefaultTimeout)
	cfg.Concurrency = cmp.Or(max(0, cfg.Concurrency), DefaultConcurrency)
	cfg.BackoffMin = cmp.Or(max(0, cfg.BackoffMin), 500*time.Millisecond)
	cfg.BackoffMax = cmp.Or(max(0, cfg.BackoffMax), 30*time.Second)
	cfg.FirstPatience = cmp.Or(max(0, cfg.FirstPatience), max(0, cfg.Patience), DefaultFirstPatience)
	cfg.Patience = cmp.Or(max(0, cfg.Patience), DefaultPatience)
	if cfg.Contact == nil {
		cfg.Contact = func(Contact) {}
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	proxy := proxyFromEnvironment()
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.Concurrency, proxy, nil)
	}
	// This gzip is faster than that of net/http: an export takes 8 % less CPU time.
	unzipping := gzhttp.Transport(cfg.Transport, gzhttp.TransportEnableZstd(false))
	return &Sender{
		cfg: cfg, dialect: dialect, base: base, elsewhere: newTransport(cfg.Concurrency, nil, publicOnly), proxy: proxy,
		forms: base.String() + dialect.Root + "/" + Escape(cfg.Account) + "/forms",
		most:  maxBytes, http: unzipping, gate: newGate(cfg.Concurrency), circuit: newCircuit(cfg), numbers: &numbers{}, dated: &atomic.Pointer[dated]{},
	}, nil
}

// newTransport returns a keep-alive transport. proxy finds the proxy of a request; nil is none.
// control is called with the address of each connection (net.Dialer), and may be nil.
func newTransport(concurrency int, proxy func(*http.Request) (*url.URL, error), control func(network, address string, c syscall.RawConn) error) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		OnProxyConnectResponse: onConnect,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: control}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		ExpectContinueTimeout:  time.Second,
	}
}

// Fork returns a sender that shares everything with s except the counters. Requests and Outcomes of
// the fork count only its own requests and those of its forks; those of s include them. A fork
// need not be closed.
func (s *Sender) Fork() *Sender {
	fork := *s
	fork.numbers = &numbers{above: s.numbers}
	return &fork
}

// Reads sets how many forms the sender and its forks read. If there are
// several, failures of one form alone are not taken for an outage.
func (s *Sender) Reads(forms int) {
	s.circuit.mu.Lock()
	defer s.circuit.mu.Unlock()
	s.circuit.forms = forms
}

// Close closes the idle connections, and the budget if it has a method Close. On a fork Close does
// nothing, because other senders use the connections and the budget.
func (s *Sender) Close() {
	if s.numbers.above != nil {
		return
	}
	if b, ok := s.cfg.Budget.(interface{ Close() }); ok {
		b.Close()
	}
	for _, way := range []http.RoundTripper{s.cfg.Transport, s.elsewhere} {
		if t, ok := way.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}

// Send sends the call and decodes the answer. It repeats an attempt that failed
// and may succeed later. The error is that of ctx, or a *RequestError.
func (s *Sender) Send(ctx context.Context, call Call) error {
	if call.file == nil {
		var err error
		if call.url, err = s.address(call); err != nil {
			return err
		}
	}
	e := &effort{form: call.Form, repeatable: call.Method == "", halved: call.Halved, unsure: s.cfg.Unsure}
	pauses := backoff.ExponentialBackOff{InitialInterval: s.cfg.BackoffMin, Multiplier: 2}
	for tries := 0; ; tries++ {
		e.last = s.attempt(ctx, call, e)
		if e.last == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		open, met, patience := s.circuit.state()
		if tries == s.cfg.Retries || !e.mayHelp(met) || e.tooHeavy() && met && !open {
			break
		}
		if open {
			continue // the next attempt waits until the open circuit lets it pass
		}
		m, rest := meaningOf(e.last), patience-e.spent
		if rest <= 0 || m.after > rest {
			break
		}
		pauses.MaxInterval, pauses.RandomizationFactor = s.cfg.BackoffMax, 1 // full jitter: 0 to twice the mean
		if m.unsent {                                                        // without jitter, Retries attempts without a connection last about as long as the patience
			pauses.MaxInterval, pauses.RandomizationFactor = 2*s.cfg.BackoffMax, 0
		}
		pause := max(min(pauses.NextBackOff(), rest), m.after) // the last attempt is made at the end of the patience
		e.spent += pause
		s.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "the request failed; trying again",
			slog.String("transaction", call.Transaction), slog.String("form", call.Form),
			slog.Int("attempt", e.attempts), slog.Duration("pause", pause.Round(time.Millisecond)), s.errorOnce(e))
		news := Contact{s.base.Host, m.answered, strings.TrimPrefix(e.told, "network: "), rest}
		if m.class == ClassDoubtful {
			news.Rest = 0
		}
		if a, ok := errors.AsType[*AnswerError](e.last); ok && a.isPage() {
			news.Answered, news.Reason = true, "its answer is not that of a Form Results Service"
		}
		s.cfg.Contact(news)
		if err := wait(ctx, pause, nil); err != nil {
			return err
		}
	}
	return &RequestError{Transaction: call.Transaction, Form: call.Form, Asked: s.cfg.Key.Redact(call.Asked), Attempts: e.attempts, Err: s.verdict(e)}
}

// errorOnce returns the error of the last attempt as an attribute for the log. It returns an empty
// attribute if the attempt before failed for the same reason.
func (s *Sender) errorOnce(e *effort) slog.Attr {
	text := s.cfg.Key.Redact(e.last.Error())
	if text == e.told {
		return slog.Attr{} // an empty attribute, which a handler of the log ignores
	}
	e.told = text
	return slog.String("error", text)
}

// verdict returns the error of a request that is not tried again. For an unreadable answer it
// decides whether the answer is the service's or another server's (AnswerError.WebPages).
func (s *Sender) verdict(e *effort) error {
	a, ok := e.last.(*AnswerError) //nolint:errorlint // an outage that wraps one is an outage
	if !ok {
		return e.last
	}
	_, met, _ := s.circuit.state()
	if e.samePage() && !met {
		a.WebPages = e.unread
		return a
	}
	if e.repeatable && (e.unread < min(doubtfulTries, s.cfg.Retries+1) || a.isPage() && !met) {
		a.varies = true // other attempts failed in other ways
	}
	return a
}

// answerSeed is the seed of all hashes of answers, so that they can be compared.
var answerSeed = maphash.MakeSeed()

// attempt sends the call once and decodes the answer.
func (s *Sender) attempt(ctx context.Context, call Call, e *effort) error {
	falls, err := s.gate.enter(ctx)
	if err != nil {
		return err
	}
	outcome := ""
	defer func() { s.gate.leave(falls, outcome) }()
	probe, err := s.admit(ctx)
	if err != nil {
		return err
	}
	defer func() {
		about := outcome
		if call.file != nil && !probe && e.last != nil && (call.file.elsewhere || !meaningOf(e.last).unsent) {
			about = "" // one file that cannot be had, or another host that is away, says nothing about the service
		}
		s.circuit.leave(ctx, probe, e, about)
	}()
	e.attempts++
	s.numbers.sent(call.Kind, e.attempts)
	s.cfg.Contact(Contact{Host: s.base.Host})
	start := time.Now()
	header, read, err := s.once(ctx, call)
	if err == nil {
		if err = encoded(header); err == nil {
			err = call.Decode(header)
		}
		err = s.interpret(call, header, err)
	}
	took := time.Since(start)
	if call.file == nil || !call.file.grew { // a large file may take as long as it needs
		e.spent += took
	}
	if err != nil && ctx.Err() != nil { // the cause may be another request's error: not changed
		err, outcome = context.Cause(ctx), OutcomeCancelled
	} else {
		m := meaningOf(err)
		if outcome = m.outcome; m.answered {
			s.cfg.Contact(Contact{Host: s.base.Host, Answered: true})
		}
		if a, ok := errors.AsType[*AnswerError](err); ok {
			a.sum = maphash.Bytes(answerSeed, *call.Body)
			e.unreadable(a)
		} else if m.unsent {
			e.unsent++
		}
	}
	e.last = err
	s.numbers.came(outcome)
	if s.cfg.Logger.Enabled(ctx, slog.LevelDebug) {
		s.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "request",
			slog.String("transaction", call.Transaction), slog.String("form", call.Form), slog.String("parameters", s.cfg.Key.RedactSent(call.Parameters.String())),
			slog.Int("attempt", e.attempts), slog.Int("status", header.Status), slog.Int("bytes", read),
			slog.Duration("duration", took.Round(time.Microsecond)), slog.Bool("ok", err == nil), slog.String("outcome", outcome))
	}
	return err
}

// once sends the call, without looking at the answer. read is how many bytes came.
func (s *Sender) once(ctx context.Context, call Call) (h Header, read int, err error) {
	if call.file != nil {
		before := call.file.written
		h, err = s.receive(ctx, call.file)
		return h, int(max(0, call.file.written-before)), err
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	h, err = s.exchange(limited, call)
	return h, len(*call.Body), err // the decoder may rewrite the body
}

// admit waits until the circuit and the budget allow an attempt that has passed
// the gate. probe tells that the attempt is the probe of an open circuit.
func (s *Sender) admit(ctx context.Context) (probe bool, err error) {
	for {
		probe, err := s.circuit.enter(ctx)
		if err != nil || s.cfg.Budget == nil {
			return probe, err
		}
		if err := s.cfg.Budget.Reserve(ctx); err != nil {
			s.circuit.giveUp(probe)
			return false, err
		}
		if open, _, _ := s.circuit.state(); probe || !open {
			return probe, nil
		}
		// The circuit opened during the wait for the budget. The request goes out in a later
		// minute than the budget booked it for, so the budget books it again then.
	}
}

// interpret returns the error of an attempt. err is the error of the decoder. An error that the
// service reports in its answer counts first, then the HTTP status.
func (s *Sender) interpret(call Call, h Header, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*ServiceError](err); ok {
		refused.complete(h, call, s.cfg)
		refused.Base = s.base
		return refused
	}
	if h.Status >= http.StatusInternalServerError || h.Status == http.StatusTooManyRequests {
		return &StatusError{Status: h.Status, RetryAfter: h.RetryAfter}
	}
	if e, ok := errors.AsType[*AnswerError](err); ok {
		if e.Status = h.Status; h.Status != http.StatusOK && e.Fault == FaultEmpty {
			e.Fault = FaultGarbled // some web servers send an empty answer for an unknown address
		}
	}
	return err
}

// encoded returns an *AnswerError for an answer in a content encoding that was not asked for.
// Answers in gzip have been decompressed already.
func encoded(h Header) error {
	encoding := h.Fields.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return nil
	}
	return &AnswerError{
		Offset: -1, Fault: FaultBeyond,
		Problem: fmt.Sprintf("it is compressed as %.40q, but formetl reads only gzip; if a proxy does this, list the service's host in NO_PROXY", encoding),
	}
}
