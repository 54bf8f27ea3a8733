package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// urlCause returns err without the address that a *url.Error adds, because it holds the API key.
func urlCause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// exchange sends a request once and reads the answer into call.Body. Its errors never hold the
// address, which may hold the API key.
func (s *Sender) exchange(ctx context.Context, call Call) (Header, error) {
	*call.Body = (*call.Body)[:0]
	req, err := http.NewRequestWithContext(ctx, call.Method, call.url, http.NoBody)
	if err != nil {
		return Header{}, &NetworkError{Problem: s.cfg.Key.RedactSent(urlCause(err).Error()), Final: true}
	}
	req.Header.Set("Accept", s.dialect.Accept)
	if s.dialect.KeyParameter == "" {
		req.Header.Set("Authorization", "bearer "+s.cfg.Key.value)
	}
	if s.cfg.UserAgent != "" {
		req.Header.Set("User-Agent", s.cfg.UserAgent)
	}
	// An http.Client would follow redirects, which carry the API key in a URL, a Referer or
	// the Authorization header.
	res, err := s.http.RoundTrip(req)
	if err != nil {
		return Header{}, s.networkError(ctx, req.URL, err)
	}
	defer func() { _ = res.Body.Close() }()
	h := Header{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), RetryAfter: parseRetryAfter(res.Header.Get("Retry-After")), Fields: res.Header}
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil && res.Header.Get("Age") == "" {
		s.dated.Store(&dated{at, time.Now()})
	}
	if res.StatusCode == http.StatusProxyAuthRequired {
		return h, proxyRefusal(req.URL.Scheme, res.StatusCode)
	}
	if res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest {
		problem := "it redirects to " + s.redactedTarget(res) + ", and formetl does not follow it, because that would send the API key there"
		return h, &AnswerError{Offset: -1, Problem: problem, Fault: FaultForeign, Status: res.StatusCode}
	}
	body := bytes.NewBuffer(*call.Body) // whose memory is used for each attempt
	n, err := body.ReadFrom(io.LimitReader(res.Body, s.most+1))
	*call.Body = body.Bytes()
	switch {
	case n > s.most:
		return h, &AnswerError{Offset: -1, Status: h.Status, Problem: fmt.Sprintf("it is larger than %d bytes, the most that formetl reads of one answer", s.most), Fault: FaultBeyond}
	case err != nil:
		return h, s.networkError(ctx, req.URL, err)
	case h.Status == http.StatusBadRequest && req.URL.Scheme == "http" && wantsTLS.Match(*call.Body):
		return h, wrongScheme(req.URL, "https")
	}
	return h, nil
}

// redactedTarget returns the address that a redirect points to, without its query and the API key.
func (s *Sender) redactedTarget(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "nowhere"
	}
	path := (&url.URL{Path: s.cfg.Key.RedactSent(to.Path)}).EscapedPath()
	return s.cfg.Key.RedactSent(to.Scheme + "://" + to.Host + strings.ReplaceAll(path, Escape(redacted), redacted))
}

// wantsTLS finds what servers answer (Go, nginx, Apache) that are spoken to in http on a port of https.
var wantsTLS = regexp.MustCompile(`HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS port|plain HTTP to an SSL-enabled server`)

// wrongScheme returns the error for a server that speaks the other scheme than the address asked has.
func wrongScheme(asked *url.URL, speaks string) *NetworkError {
	e := &NetworkError{
		Problem: fmt.Sprintf("%s speaks %s, not %s", asked.Host, speaks, asked.Scheme), Final: true,
		remedy: fmt.Sprintf("write %s://%s as the base URL", speaks, asked.Host),
	}
	if speaks == "http" && !IsLoopback(asked.Hostname()) {
		e.remedy = "check the port of the base URL; if the network is your own, " + e.remedy + ", and allow_http: true (or --allow-http)"
	}
	return e
}

// networkError describes an error of the network, without the address asked. ctx is that of the attempt.
func (s *Sender) networkError(ctx context.Context, asked *url.URL, err error) error {
	cause := urlCause(err)
	if known, ok := errors.AsType[*Error](cause); ok { // the proxy's address is unreadable
		return known
	}
	if known, ok := errors.AsType[*NetworkError](cause); ok { // the proxy refused
		return known
	}
	record, noTLS := errors.AsType[tls.RecordHeaderError](cause)
	e := &NetworkError{
		Problem: s.cfg.Key.Redact(cause.Error()),
		Final:   noTLS || is[*tls.CertificateVerificationError](cause) || is[x509.UnknownAuthorityError](cause) || is[x509.HostnameError](cause),
	}
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		e.Problem = "the connection was closed before the whole answer came"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Problem = fmt.Sprintf("no complete answer within %s", s.cfg.Timeout)
	}
	if is[x509.UnknownAuthorityError](cause) || is[x509.SystemRootsError](cause) {
		e.remedy = "if a proxy or your company signs certificates itself, set SSL_CERT_FILE to a file with its root certificate"
	}
	switch {
	case noTLS && string(record.RecordHeader[:]) == "HTTP/":
		e = wrongScheme(asked, "http")
	case noTLS:
		e.Problem, e.remedy = asked.Host+" does not speak https", "check the host and the port of the base URL"
	}
	if dial, ok := errors.AsType[*net.OpError](cause); ok {
		if e.unsent = dial.Op == "dial" || dial.Op == "proxyconnect"; dial.Op == "proxyconnect" {
			e.Problem = fmt.Sprintf("the proxy in %s cannot be reached: %s", proxyVariable("https"), s.cfg.Key.Redact(dial.Err.Error()))
			e.remedy = "correct the proxy's address there, or list the service's host in NO_PROXY; then run the same command again"
			return e
		}
	}
	if dns, ok := errors.AsType[*net.DNSError](cause); ok && dns.IsNotFound {
		e.Problem, e.doubtful = s.cfg.Key.Redact(fmt.Sprintf("the host %s is not known", dns.Name)), true
		e.remedy = "check the spelling of the base URL, and this machine's network; then run the same command again"
	}
	return e
}

// longestRetryAfter bounds the pause that a Retry-After header may ask for.
const longestRetryAfter = 24 * time.Hour

// parseRetryAfter returns the pause that a Retry-After header asks for, in seconds or until a date
// (RFC 9110, section 10.2.3). It returns 0 for anything else.
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
