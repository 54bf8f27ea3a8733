package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// FileStatus says what became of an uploaded file.
type FileStatus string

// What can become of an uploaded file.
const (
	FileStored    FileStatus = "stored"    // it came whole
	FileMissing   FileStatus = "missing"   // the service does not have it
	FileForbidden FileStatus = "forbidden" // the service does not give it, or sends a web page such as a login
	FileTooLarge  FileStatus = "too_large" // it has more than FileCall.MaxBytes
	FileChanged   FileStatus = "changed"   // every attempt was cut short, and the file became another one in between
	FileRefused   FileStatus = "refused"   // its link or a redirect leads to a host or an address that is not asked
	FileFailed    FileStatus = "failed"    // no attempt brought the whole file
)

// FileCall is a request for an uploaded file. Neither the API key nor a token is sent for a file
// (service-v2.md, section 6).
type FileCall struct {
	Form     string
	Link     *url.URL // from FileLink
	Hosts    []string // hosts, or host:port, that links and redirects may lead to, besides the service's own
	MaxBytes int64
	// Begin begins the file from its first byte. What was written before is void. If Begin or its
	// writer fails, the call ends with that error.
	Begin func() (io.Writer, error)
}

// File is what came of a FileCall.
type File struct {
	Status FileStatus
	Type   string // the media type that the service gives, such as image/png; "" if none
}

// FileLink reads a value as the link of an uploaded file: an http or https address, or a path on the
// service's host, that ends with /files/ and a name that begins with f- or sig- (service-notes.md,
// "File answers"; service-v2.md, section 6).
func FileLink(value string) (*url.URL, bool) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" && (u.Scheme != "" || !strings.HasPrefix(value, "/")) || u.Host == "" && u.Scheme != "" {
		return nil, false
	}
	folder, name := path.Split(u.EscapedPath())
	return u, strings.HasSuffix(folder, "/files/") && (strings.HasPrefix(name, "f-") || strings.HasPrefix(name, "sig-"))
}

// maxRedirects bounds the redirects of a request for a file.
const maxRedirects = 5

// receipt is what has come of a file so far, over all attempts.
type receipt struct {
	call      FileCall
	file      File
	to        io.Writer // nil before the first byte
	written   int64
	validator string // tells one version of the file from another, "" if the service gives none
	grew      bool   // the last attempt brought bytes
	elsewhere bool   // the last attempt ended at another host than the service's
	changes   int    // how often the file was another one than in the attempt before
	failure   error  // of Begin or of its writer
}

// File asks for an uploaded file. An attempt that was cut short is continued where it ended, if
// the service says that the file is still the same. The error is that of ctx or of FileCall.Begin,
// a *BudgetError, or a *RequestError with an *OutageError; what else may happen is a FileStatus.
func (s *Sender) File(ctx context.Context, call FileCall) (File, error) {
	if call.Link = s.base.ResolveReference(call.Link); !s.allowed(call.Link, call.Hosts) {
		return File{Status: FileRefused}, nil
	}
	r := &receipt{call: call}
	var none []byte
	err := s.Send(ctx, Call{Kind: KindFile, Transaction: "Get Uploaded File", Form: call.Form, Body: &none, Decode: func(Header) error { return nil }, file: r})
	switch {
	case err == nil:
		return r.file, nil
	case r.failure != nil:
		return File{}, r.failure
	case ctx.Err() != nil || is[*BudgetError](err) || is[*OutageError](err) || !is[*RequestError](err):
		return File{}, err
	case r.changes > 0:
		return File{Status: FileChanged}, nil
	}
	return File{Status: FileFailed}, nil
}

// allowed tells whether a file may be asked for at an address.
func (s *Sender) allowed(u *url.URL, hosts []string) bool {
	if u.User != nil {
		return false
	}
	if s.isOwn(u) {
		return true
	}
	listed := slices.ContainsFunc(hosts, func(host string) bool {
		return strings.EqualFold(hostOf(&url.URL{Scheme: u.Scheme, Host: host}), hostOf(u))
	})
	return listed && (u.Scheme == "https" || s.base.Scheme == "http")
}

// isOwn tells whether an address is on the service's own host, by whatever scheme.
func (s *Sender) isOwn(u *url.URL) bool { return strings.EqualFold(hostOf(u), hostOf(s.base)) }

// hostOf returns host:port, or the host alone where the port is that of the scheme.
func hostOf(u *url.URL) string {
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		return u.Hostname()
	}
	return u.Host
}

// receive sends a request for a file once, and writes what comes. The time is not bounded, but
// something has to come within Config.Timeout.
func (s *Sender) receive(ctx context.Context, r *receipt) (h Header, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := &NetworkError{Problem: fmt.Sprintf("nothing arrived within %s", s.cfg.Timeout)}
	idle := time.AfterFunc(s.cfg.Timeout, func() { cancel(silent) })
	defer idle.Stop()
	broken := func(err error) error {
		if context.Cause(ctx) == error(silent) { //nolint:errorlint // it is that very error or not
			return silent
		}
		return s.networkError(ctx, r.call.Link, err)
	}
	r.grew = false
	res, err := s.follow(ctx, r)
	if err != nil {
		return h, broken(err)
	}
	if res == nil {
		r.file.Status = FileRefused
		return h, nil
	}
	defer func() { _ = res.Body.Close() }()
	h = Header{Status: res.StatusCode, RetryAfter: parseRetryAfter(res.Header.Get("Retry-After"))}
	if done, err := r.begin(res, h.RetryAfter); done || err != nil {
		return h, err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(buffer)
		if n > 0 {
			idle.Stop() // how long the writer takes is not the service's matter
			if r.written+int64(n) > r.call.MaxBytes {
				r.file.Status = FileTooLarge
				return h, nil
			}
			if _, r.failure = r.to.Write(buffer[:n]); r.failure != nil {
				return h, r.failure
			}
			r.written, r.grew = r.written+int64(n), true
			idle.Reset(s.cfg.Timeout)
		}
		switch {
		case errors.Is(err, io.EOF):
			r.file.Status = FileStored
			return h, nil
		case err != nil:
			return h, broken(err)
		}
	}
}

// follow sends the request and those that redirects ask for. It returns nil if a redirect leads
// where files are not asked for.
func (s *Sender) follow(ctx context.Context, r *receipt) (*http.Response, error) {
	at := *r.call.Link
	for range maxRedirects {
		if s.isOwn(&at) {
			at.Scheme = s.base.Scheme // no plain HTTP where the service has HTTPS
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept-Encoding", "identity") // the file's own bytes
		if s.cfg.UserAgent != "" {
			req.Header.Set("User-Agent", s.cfg.UserAgent)
		}
		if r.written > 0 && r.validator != "" {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.written))
			req.Header.Set("If-Range", r.validator)
		}
		way := s.cfg.Transport
		r.elsewhere = !s.isOwn(&at)
		if proxy, _ := s.proxy(req); proxy == nil && r.elsewhere { // the proxy looks up the other host itself
			way = s.elsewhere
		}
		res, err := way.RoundTrip(req)
		if is[*addressError](err) {
			return nil, nil //nolint:nilerr // the status tells it
		}
		if err != nil || res.StatusCode < http.StatusMultipleChoices || res.StatusCode >= http.StatusBadRequest {
			return res, err
		}
		_ = res.Body.Close()
		to, err := res.Location()
		if err != nil || !s.allowed(to, r.call.Hosts) {
			return nil, nil //nolint:nilerr // the redirect leads nowhere
		}
		at = *to
	}
	return nil, nil //nolint:nilnil // as the comment says
}

// begin looks at the beginning of an answer, and decides whether its bytes continue the file.
// done tells that no bytes are to be read. after is the pause that the answer asks for.
func (r *receipt) begin(res *http.Response, after time.Duration) (done bool, err error) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // "" where it cannot be read
	r.file = File{Type: kind}
	asked, named := res.Request.URL, path.Ext(r.call.Link.Path)
	page := kind == "text/html" || kind == "application/xhtml+xml"
	switch status := res.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusGone:
		r.file.Status = FileMissing
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		r.file.Status = FileForbidden
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return false, &StatusError{Status: status, RetryAfter: after}
	case status == http.StatusRequestedRangeNotSatisfiable && r.written > 0:
		r.written, r.validator = 0, ""
		r.changes++
		return false, &NetworkError{Problem: "the file is shorter now than what had come of it, so it is fetched anew"}
	case status != http.StatusOK && status != http.StatusPartialContent:
		r.file.Status = FileFailed
	case page && (asked.Path != r.call.Link.Path || !strings.HasPrefix(strings.ToLower(named), ".htm") && !strings.HasPrefix(strings.ToLower(named), ".xht")):
		r.file.Status = FileForbidden
	case res.ContentLength < 0 && res.ProtoMajor < 2 && len(res.TransferEncoding) == 0:
		r.file.Status = FileFailed // nothing tells whether the file is whole
	}
	if r.file.Status != "" {
		return true, nil
	}
	validator := res.Header.Get("ETag")
	if strings.HasPrefix(validator, "W/") { // weak: the bytes may differ (RFC 9110, section 13.1.5)
		validator = ""
	}
	if res.StatusCode == http.StatusPartialContent {
		var from, to, whole int64
		_, err := fmt.Sscanf(res.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &whole)
		if err != nil || from != r.written || to != whole-1 || r.validator == "" || validator != r.validator {
			r.written, r.validator = 0, ""
			return false, &NetworkError{Problem: "another part of the file came than was asked for, so the file is fetched anew"}
		}
		return false, nil
	}
	if r.written > 0 && validator != r.validator {
		r.changes++
	}
	r.written, r.validator = 0, validator
	if res.ContentLength > r.call.MaxBytes {
		r.file.Status = FileTooLarge
		return true, nil
	}
	r.to, r.failure = r.call.Begin()
	return false, r.failure
}

// addressError tells that a host is at an address of this machine or of its network.
type addressError struct{ address string }

func (e *addressError) Error() string { return e.address + " is not a public address" }

// publicOnly refuses a connection to an address that is not public, whatever name led to it: a link
// is text that anybody may have typed.
func publicOnly(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !isPublic(at.Addr()) {
		return &addressError{address}
	}
	return nil
}

// isPublic tells whether an address is one of the internet: neither of this machine nor of a
// private or special network (RFC 6890).
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	special := []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10"}
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(special, func(net string) bool { return netip.MustParsePrefix(net).Contains(ip) })
}
