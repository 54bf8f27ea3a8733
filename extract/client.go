package extract

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Defaults of Config.
const (
	DefaultConcurrency = 4
	DefaultTimeout     = 30 * time.Second
	DefaultRetries     = 8
)

// Config says which account a Client speaks to, and how.
type Config struct {
	BaseURL   string // HTTPS, or plain HTTP to a loopback address
	Account   string // the account's URL extension
	Key       Secret
	AllowHTTP bool // plain HTTP to other hosts too

	Timeout     time.Duration // of one attempt; 0 is DefaultTimeout
	Retries     int           // attempts after the first; negative is DefaultRetries
	Concurrency int           // most requests under way at once; 0 is DefaultConcurrency
	Budget      Budget        // asked before every attempt; nil spends freely

	// BackoffMin is the mean pause after the first attempt; it doubles up to
	// BackoffMax. Each pause is drawn between none and twice the mean. 0 is
	// 500 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// Patience is the most time that one request may take with all its attempts
	// and the pauses between them, and how long an outage is waited for. 0 is
	// two minutes.
	Patience time.Duration

	Logger    *slog.Logger      // nil discards
	Transport http.RoundTripper // nil is a keep-alive transport of the client's own
	UserAgent string
}

// Budget is asked for leave before every attempt of a request.
type Budget interface {
	// Reserve returns when one more request may be sent, or an error: that of
	// ctx, or a *BudgetError where the budget is used up.
	Reserve(ctx context.Context) error
}

// Client sends the six transactions of the service for one account
// (specification, section 4). It retries what may succeed later, keeps within
// its concurrency and budget, waits out an outage, and never lets the API key
// into an error or a log. It is safe for concurrent use.
type Client struct {
	cfg     Config
	base    *url.URL
	log     *slog.Logger
	gate    *gate
	circuit *circuit
	bounds  Bounds // of one answer
	stats   *counters
	usual   *atomic.Int64 // size of the last page of results
	forked  bool
}

// NewClient checks the configuration and returns a client. It sends nothing.
func NewClient(cfg Config) (*Client, error) {
	base, err := ParseBaseURL(cfg.BaseURL, cfg.AllowHTTP)
	if err != nil {
		return nil, &ConfigError{cfg.Key.Redact(err.Error())}
	}
	switch {
	case cfg.Account == "" || cfg.Account == "." || cfg.Account == "..":
		return nil, &ConfigError{fmt.Sprintf("account %q: give the account's URL extension", cfg.Account)}
	case cfg.Key.IsZero():
		return nil, &ConfigError{"no API key: set FORMETL_API_KEY, or name a file that holds it"}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Retries < 0 {
		cfg.Retries = DefaultRetries
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = DefaultConcurrency
	}
	if cfg.BackoffMin <= 0 {
		cfg.BackoffMin = 500 * time.Millisecond
	}
	if cfg.BackoffMax <= 0 {
		cfg.BackoffMax = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.Concurrency)
	}
	return &Client{
		cfg:     cfg,
		base:    base,
		log:     cfg.Logger,
		gate:    newGate(cfg.Concurrency),
		circuit: newCircuit(cfg),
		bounds:  Bounds{Bytes: maxAnswer},
		stats:   &counters{},
		usual:   &atomic.Int64{},
	}, nil
}

// Fork returns a client that shares everything with c but its numbers:
// Requests and Outcomes of the fork tell what went through it and its own
// forks, those of c hold that too. So forms that are read side by side each
// know what they cost. A fork need not be closed.
func (c *Client) Fork() *Client {
	fork := *c
	fork.stats, fork.forked = &counters{above: c.stats}, true
	return &fork
}

func newTransport(concurrency int) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConnsPerHost:   concurrency,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		ExpectContinueTimeout: time.Second,
	}
}

// Close drops the idle connections. On a fork it does nothing: others use them.
func (c *Client) Close() {
	if c.forked {
		return
	}
	if t, ok := c.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// ParseBaseURL checks the address of the service: HTTPS, or plain HTTP to a
// loopback address, or with allowHTTP to any host; no user, query or fragment.
func ParseBaseURL(raw string, allowHTTP bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil { // it quotes the address, in which somebody may have put the key
		return nil, &ConfigError{"the base URL cannot be read as an address; give it as https://host"}
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, &ConfigError{"the base URL is not an http or https address; give it as https://host"}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, &ConfigError{"the base URL holds a user, a query or a fragment; give only https://host, and the key by a reference"}
	case u.Scheme == "http" && !allowHTTP && !IsLoopback(u.Hostname()):
		return nil, &ConfigError{fmt.Sprintf("the base URL sends the API key to %s over plain HTTP; use https, or set allow_http: true if the network is yours", u.Host)}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// IsLoopback tells whether a host is this machine: localhost, 127.0.0.0/8 or
// ::1.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// urlCause drops the address that a *url.Error repeats: it may hold the key.
func urlCause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// endpoint is the address of a transaction without its parameters. Get Forms
// has neither a form nor a transaction's name in its path.
func (c *Client) endpoint(form, transaction string) (*url.URL, error) {
	path := "/api/users/" + escape(c.cfg.Account) + "/forms"
	if transaction != "" {
		if form == "" || form == "." || form == ".." {
			return nil, &ConfigError{fmt.Sprintf("%q is not a form: give its form directory", form)}
		}
		path += "/" + escape(form) + "/" + transaction
	}
	u := *c.base
	full := c.base.EscapedPath() + path
	plain, err := url.PathUnescape(full)
	if err != nil {
		return nil, fmt.Errorf("the address of form %q cannot be built: %w", form, err)
	}
	u.Path, u.RawPath = plain, full
	return &u, nil
}

// send makes one attempt and reads its answer. Its errors never hold the
// address.
func (c *Client) send(ctx context.Context, method, address string, into receiver) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return answer{}, &NetworkError{Problem: c.cfg.Key.Redact(urlCause(err).Error()), Final: true}
	}
	req.Header.Set("Accept", "application/xml, text/xml")
	if c.cfg.UserAgent != "" {
		req.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	// Not by an http.Client: it follows redirects, or at least reads where
	// they lead, and they would carry the key on in a URL or a Referer.
	res, err := c.cfg.Transport.RoundTrip(req)
	if err != nil {
		return answer{}, c.networkError(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{contentType: res.Header.Get("Content-Type"), status: res.StatusCode, retryAfter: parseRetryAfter(res.Header.Get("Retry-After"))}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return a, &RedirectError{Status: res.StatusCode, To: c.redactedTarget(res)}
	}
	a.size, err = into.read(res.Body, res.ContentLength)
	if _, ok := errors.AsType[*AnswerError](err); err != nil && !ok {
		err = c.networkError(ctx, err)
	}
	return a, err
}

// redactedTarget names where a redirect points to, without query and key.
func (c *Client) redactedTarget(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "nowhere"
	}
	path := (&url.URL{Path: c.cfg.Key.Redact(to.Path)}).EscapedPath()
	return c.cfg.Key.Redact(to.Scheme + "://" + to.Host + strings.ReplaceAll(path, escape(redacted), redacted))
}

// networkError says what broke without the address, which holds the key. ctx
// is the attempt's.
func (c *Client) networkError(ctx context.Context, err error) error {
	cause := urlCause(err)
	e := &NetworkError{Problem: c.cfg.Key.Redact(cause.Error()), Final: finalNetwork(cause)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Problem = fmt.Sprintf("no whole answer within %s", c.cfg.Timeout)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](cause); ok {
		e.Problem = "the server does not speak TLS: check the scheme and the port of the base URL"
	}
	if dial, ok := errors.AsType[*net.OpError](cause); ok {
		e.unsent = dial.Op == "dial"
	}
	if dns, ok := errors.AsType[*net.DNSError](cause); ok && dns.IsNotFound {
		e.Problem, e.doubtful = c.cfg.Key.Redact(fmt.Sprintf("the host %s is not known: check the base URL and the network", dns.Name)), true
	}
	return e
}

// longestRetryAfter bounds what a Retry-After header may ask for.
const longestRetryAfter = 24 * time.Hour

// parseRetryAfter reads a number of seconds or a date (RFC 9110, section
// 10.2.3); 0 for anything else.
func parseRetryAfter(v string) time.Duration {
	v = strings.TrimSpace(v)
	if v != "" && strings.Trim(v, "0123456789") == "" {
		seconds, err := strconv.ParseInt(v, 10, 64)
		if err != nil || seconds > int64(longestRetryAfter/time.Second) {
			return longestRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(t)), longestRetryAfter)
	}
	return 0
}
