package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultConcurrency = 4
	DefaultTimeout     = 30 * time.Second
	DefaultRetries     = 8
)

// maxAnswer bounds an answer's size in bytes, compressed or not. A hundred
// results with sixteen hundred answers of a kilobyte each stay well below.
const maxAnswer = 256 << 20

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

	BackoffMin, BackoffMax time.Duration // between attempts; 0 is 500 ms and 30 s

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
// its concurrency and budget, and never lets the API key into an error or a
// log. It is safe for concurrent use.
type Client struct {
	cfg   Config
	base  *url.URL
	http  *http.Client
	log   *slog.Logger
	gate  *gate
	stats counters
}

// NewClient checks the configuration and returns a client. It sends nothing.
func NewClient(cfg Config) (*Client, error) {
	base, err := ParseBaseURL(cfg.BaseURL, cfg.AllowHTTP)
	if err != nil {
		return nil, err
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
		cfg:  cfg,
		base: base,
		http: &http.Client{
			Transport: cfg.Transport,
			// A redirect would carry the key on in a URL or a Referer.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log:  cfg.Logger,
		gate: newGate(cfg.Concurrency),
	}, nil
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

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ParseBaseURL checks the address of the service: HTTPS, or plain HTTP to a
// loopback address, or with allowHTTP to any host; no user, query or fragment.
func ParseBaseURL(raw string, allowHTTP bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &ConfigError{fmt.Sprintf("the base URL cannot be read (%v); give it as https://host", urlCause(err))}
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, &ConfigError{"the base URL is not an http or https address; give it as https://host"}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, &ConfigError{"the base URL holds a user, a query or a fragment; give only https://host, and the key by a reference"}
	case u.Scheme == "http" && !allowHTTP && !loopback(u.Hostname()):
		return nil, &ConfigError{fmt.Sprintf("the base URL sends the API key to %s over plain HTTP; use https, or set allow_http: true if the network is yours", u.Host)}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func loopback(host string) bool {
	if host == "localhost" {
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

// endpoint is the address of a transaction without its parameters.
// An empty form leaves the form-specific part out.
func (c *Client) endpoint(form, transaction string) (*url.URL, error) {
	if form == "." || form == ".." {
		return nil, fmt.Errorf("%q is not a form", form)
	}
	path := "/api/users/" + escape(c.cfg.Account) + "/forms"
	if transaction != "" {
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

// answer is what one attempt brought: a whole body and what came with it.
type answer struct {
	body        []byte
	contentType string
	status      int
	retryAfter  time.Duration
}

// send makes one attempt. Its errors never hold the address.
func (c *Client) send(ctx context.Context, method, address string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return answer{}, &NetworkError{Problem: c.cfg.Key.Redact(urlCause(err).Error()), Final: true}
	}
	req.Header.Set("Accept", "application/xml, text/xml")
	if c.cfg.UserAgent != "" {
		req.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.networkError(err)
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{contentType: res.Header.Get("Content-Type"), status: res.StatusCode, retryAfter: parseRetryAfter(res.Header.Get("Retry-After"))}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return a, &RedirectError{Status: res.StatusCode, To: c.redactedTarget(res)}
	}
	a.body, err = readAll(res.Body, res.ContentLength)
	if err != nil {
		return a, c.networkError(err)
	}
	if len(a.body) > maxAnswer {
		return a, &AnswerError{Offset: maxAnswer, Problem: fmt.Sprintf("it is larger than %d MiB", maxAnswer>>20)}
	}
	return a, nil
}

func readAll(r io.Reader, length int64) ([]byte, error) {
	size := int64(64 << 10)
	if length > 0 && length <= maxAnswer {
		size = length + 1 // one byte more, so that the end is seen without growing
	}
	buf := make([]byte, 0, size)
	limited := io.LimitReader(r, maxAnswer+1)
	for {
		n, err := limited.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// redactedTarget names where a redirect points to, without query and key.
func (c *Client) redactedTarget(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "nowhere"
	}
	return c.cfg.Key.Redact((&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String())
}

// networkError says what broke without the address, which holds the key.
func (c *Client) networkError(err error) error {
	cause := urlCause(err)
	e := &NetworkError{Problem: c.cfg.Key.Redact(cause.Error()), Final: finalNetwork(cause)}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		e.Problem = fmt.Sprintf("no whole answer within %s", c.cfg.Timeout)
	}
	return e
}

func parseRetryAfter(v string) time.Duration {
	if v == "" {
		return 0
	}
	var seconds int
	if _, err := fmt.Sscanf(v, "%d", &seconds); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 24*3600)) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}
