package transport_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

func TestParseBaseURL(t *testing.T) {
	for _, tc := range []struct {
		raw       string
		allowHTTP bool
		want      string // the address, or "!" and a part of the error
	}{
		{"https://fs1.example.com", false, "https://fs1.example.com"},
		{"HTTPS://fs1.example.com/", false, "https://fs1.example.com"},
		{"https://fs1.example.com:8443/base//", false, "https://fs1.example.com:8443/base"},
		{"https://fs1.example.com/a%2Fb/", false, "https://fs1.example.com/a%2Fb"},
		{"http://127.0.0.1:8080", false, "http://127.0.0.1:8080"},
		{"http://127.9.8.7", false, "http://127.9.8.7"},
		{"https://fs1.example.com/base/acme/form1/index", false, "!write only https://fs1.example.com/base; the account is acme, and the form is form1"},
		{"http://localhost", false, "http://localhost"},
		{"http://LocalHost:1", false, "http://LocalHost:1"},
		{"http://fs1.example.com", true, "http://fs1.example.com"},
		{"http://fs1.example.com", false, "!allow_http"},
		{"http://localhost.example.com", false, "!allow_http"},
		{"http://128.0.0.1", false, "!allow_http"},
		{"http://[::2]", false, "!allow_http"},
		{"http://0.0.0.0", false, "!allow_http"},
		{"ftp://fs1.example.com", true, "!not a valid address of http or https"},
		{"", true, "!not a valid address of http or https"},
		{"https://", true, "!not a valid address of http or https"},
		{"https:fs1.example.com", true, "!not a valid address of http or https"},
		{"https://user@fs1.example.com", true, "!a user"},
		{"https://fs1.example.com/api", true, "!write https://fs1.example.com"},
		{"https://fs1.example.com/base/api/v2/acme/forms/", true, "!write https://fs1.example.com/base"},
		{"https://fs1.example.com/api/gateway", true, "https://fs1.example.com/api/gateway"},
		{"https://fs1.example.com?x=1", true, "!a ? or a #"},
		{"https://fs1.example.com#x", true, "!a ? or a #"},
		{"https://fs1.example.com:port", true, "!not a valid address"},
		{"https://fs1.exa mple.com", true, "!not a valid address"},
		{"https://fs1.example.com/\x00", true, "!not a valid address"},
	} {
		u, err := transport.ParseBaseURL(tc.raw, tc.allowHTTP)
		if part, bad := strings.CutPrefix(tc.want, "!"); bad {
			if e, ok := errors.AsType[*transport.Error](err); !ok || !strings.Contains(e.Problem, part) {
				t.Errorf("ParseBaseURL(%q) = %v, %v; want an error with %q", tc.raw, u, err, part)
			}
			continue
		}
		if err != nil || u.String() != tc.want {
			t.Errorf("ParseBaseURL(%q) = %v, %v; want %s", tc.raw, u, err, tc.want)
		}
	}
}

func TestNewClientChecks(t *testing.T) {
	good := transport.Config{BaseURL: "https://fs1.example.com", Account: "acme", Key: transport.NewSecret(transport.Canary)}
	for _, tc := range []struct {
		change func(*transport.Config)
		want   string // "" for none
	}{
		{func(*transport.Config) {}, ""},
		{func(c *transport.Config) { c.Account = "" }, "account"},
		{func(c *transport.Config) { c.Account = ".." }, "account"},
		{func(c *transport.Config) { c.Key = transport.NewSecret(" \n") }, "no API key"},
		{func(c *transport.Config) { c.BaseURL = "http://fs1.example.com" }, "unencrypted"},
		{func(c *transport.Config) { c.BaseURL = "https://fs1.example.com:" + transport.Canary }, "not a valid address"},
	} {
		cfg := good
		tc.change(&cfg)
		c, err := v1.NewClient(cfg)
		if tc.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			if c.Settings().Timeout != transport.DefaultTimeout || c.Settings().Concurrency != transport.DefaultConcurrency || c.Settings().Retries != 0 || c.Settings().BackoffMin <= 0 || c.Settings().BackoffMax <= 0 {
				t.Errorf("defaults %+v", *c.Settings())
			}
			continue
		}
		if e := transport.MustAs[*transport.Error](t, err); !strings.Contains(e.Problem, tc.want) {
			t.Errorf("err = %v, want %q", err, tc.want)
		}
		transport.HidesKey(t, "error", err.Error())
	}
	good.Retries = -1
	if c, err := v1.NewClient(good); err != nil || c.Settings().Retries != transport.DefaultRetries {
		t.Errorf("retries %d, %v", c.Settings().Retries, err)
	}
}

// TestBaseURLWithAPath puts the service below a path of its server.
func TestBaseURLWithAPath(t *testing.T) {
	server := httptest.NewServer(http.StripPrefix("/a b", &formservice.Server{}))
	defer server.Close()
	c := extracttest.NewClient(t, transport.Config{BaseURL: server.URL + "/a%20b/", Account: formservice.DefaultAccount, Key: transport.NewSecret(formservice.DefaultKey)})
	if n, err := c.Count(t.Context(), "form1", extract.CountQuery{}); err != nil || n != 1000 {
		t.Errorf("count = %d, %v", n, err)
	}
}

// TestRedirects are not followed, and the error shows where they lead without
// what the address carries.
func TestRedirects(t *testing.T) {
	for _, tc := range []struct {
		status   int
		location func(r *http.Request) string
		want     string
	}{
		{302, func(r *http.Request) string { return "https://elsewhere.invalid" + r.RequestURI }, "https://elsewhere.invalid/api/users/acme/forms/form1/results/count,"},
		{301, func(r *http.Request) string { return "/login?next=" + url.QueryEscape(r.RequestURI) }, "/login,"},
		{307, func(*http.Request) string {
			return "https://user:pw@elsewhere.invalid/" + url.PathEscape(transport.Canary) + "?x#y"
		}, "https://elsewhere.invalid/[redacted],"},
		{308, func(*http.Request) string { return "" }, "nowhere,"},
		{303, func(*http.Request) string { return "://" }, "nowhere,"},
	} {
		asked := 0
		c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("Location", tc.location(r))
			w.WriteHeader(tc.status)
		}), func(cfg *transport.Config) { cfg.Key = transport.NewSecret(transport.Canary) })
		err := countOnly(t.Context(), c)
		e := transport.MustAs[*transport.AnswerError](t, err)
		if !e.NotService() || e.Status != tc.status || !strings.Contains(err.Error(), tc.want) || strings.ContainsAny(e.Problem, "?#") || strings.Contains(e.Problem, "pw") {
			t.Errorf("err = %v, want %q", err, tc.want)
		}
		transport.HidesKey(t, "error", err.Error())
		if asked != transport.DoubtfulTries || transport.Temporary(err) {
			t.Errorf("%d requests, temporary %v; a redirect is final where nothing else was answered", asked, transport.Temporary(err))
		}
	}
}

func TestConnectionsAreReused(t *testing.T) {
	c := extracttest.Serve(t, &formservice.Server{}, nil)
	reused := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for i := range 10 {
		page, err := c.Results(ctx, "form1", extract.ResultsQuery{Page: i + 1})
		if err != nil {
			t.Fatal(err)
		}
		page.Release()
		if _, err := c.Count(ctx, "missing", extract.CountQuery{}); err == nil {
			t.Fatal("no error")
		}
	}
	if reused != 19 {
		t.Errorf("%d of 19 requests came over a kept connection", reused)
	}
}

// TestKeyStaysHidden makes every kind of failure and looks for the key in
// errors and logs at every level.
func TestKeyStaysHidden(t *testing.T) {
	address := "https://fs1.example.com/?fs_api_key=" + transport.Escape(transport.Canary)
	fail := func(err error) extracttest.RoundTrip {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	answer := func(status int, body string, headers ...string) extracttest.RoundTrip {
		return func(*http.Request) (*http.Response, error) { return extracttest.Respond(status, body, headers...), nil }
	}
	for _, tc := range []struct {
		name string
		f    extracttest.RoundTrip
	}{
		{"url.Error", fail(&url.Error{Op: "Get", URL: address, Err: errors.New("broken")})},
		{"plain text", fail(fmt.Errorf("cannot reach %s or %s", address, transport.Canary))},
		{"query escaped", fail(errors.New(url.QueryEscape(transport.Canary)))},
		{"lower-case escapes", fail(errors.New(transport.LowerEscapes(transport.Escape(transport.Canary))))},
		{"path escaped", fail(errors.New(url.PathEscape(transport.Canary)))},
		{"unknown host", fail(&net.DNSError{Err: "no such host", Name: transport.Canary, IsNotFound: true})},
		{"dial", fail(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New(transport.Canary)})},
		{"service's words", answer(401, `<fs_response status="error"><error code="100">bad key c4n4ry/key+with %special&amp;signs=é</error></fs_response>`)},
		{"busy with the key", answer(200, `<fs_response status="error"><error code="3">`+transport.Escape(transport.Canary)+`</error></fs_response>`)},
		{"page of a proxy", answer(502, "<html>"+address+"</html>")},
		{"not XML", answer(200, address)},
		{"404", answer(404, address)},
		{"redirect", answer(302, "", "Location: "+address)},
		{"cut", func(*http.Request) (*http.Response, error) {
			res := extracttest.Respond(200, "")
			res.Body = io.NopCloser(io.MultiReader(strings.NewReader("<fs_resp"), errReader{errors.New(address)}))
			return res, nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log lockedBuffer
			c := extracttest.Answering(t, transport.Canary, tc.f, func(cfg *transport.Config) {
				cfg.BackoffMin, cfg.BackoffMax = time.Microsecond, time.Microsecond
				cfg.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			_, err := c.Results(t.Context(), "form one", extract.ResultsQuery{Limit: 5, Search: extract.Search{Where: []extract.Criterion{{Column: "1", Operator: extract.OpEquals, Term: transport.Canary}}}})
			e := transport.MustAs[*transport.RequestError](t, err)
			if e.Form != "form one" || e.Transaction != "Get Results" || !strings.Contains(e.Asked, "search 1 equals ") || e.Attempts < 1 {
				t.Errorf("the error does not say what failed: %+v", e)
			}
			for cause := error(e); cause != nil; cause = errors.Unwrap(cause) {
				transport.HidesKey(t, "error", fmt.Sprintf("%v %+v", cause, cause))
			}
			if !strings.Contains(log.String(), `"msg":"request"`) {
				t.Error("no debug log")
			}
			transport.HidesKey(t, "log", log.String())
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestUntrustedCertificate is final: trying again cannot help.
func TestUntrustedCertificate(t *testing.T) {
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	dials := 0
	dialing := transport.NewTransport(1)
	dial := dialing.DialContext
	dialing.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return dial(ctx, network, address)
	}
	c := extracttest.NewClient(t, transport.Config{BaseURL: server.URL, Account: "acme", Key: transport.NewSecret(transport.Canary), Retries: 3, Transport: dialing})
	err := countOnly(t.Context(), c)
	if e := transport.MustAs[*transport.NetworkError](t, err); !e.Final || transport.Temporary(err) || !strings.Contains(e.Problem, "certificate") || !strings.Contains(e.Hint(), "SSL_CERT_FILE") {
		t.Errorf("err = %v, temporary %v", err, transport.Temporary(err))
	}
	if dials != 1 || asked != 0 {
		t.Errorf("%d connections, %d requests; want one and none", dials, asked)
	}
	transport.HidesKey(t, "error", err.Error())

	// The same server, spoken to as the host that its certificate does not name.
	trusting := server.Client().Transport.(*http.Transport).Clone()
	trusting.TLSClientConfig.ServerName = "fs1.example.org"
	c = extracttest.NewClient(t, transport.Config{BaseURL: server.URL, Account: "acme", Key: transport.NewSecret(transport.Canary), Retries: 3, Transport: trusting})
	if e := transport.MustAs[*transport.NetworkError](t, countOnly(t.Context(), c)); !e.Final {
		t.Errorf("a wrong host name is not final: %v", e)
	}
}

// TestOtherScheme is final too, and the hint is the address to write.
func TestOtherScheme(t *testing.T) {
	plain, secure := httptest.NewServer(http.NotFoundHandler()), httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for right, speaks := range map[string]string{plain.URL: " speaks http, not https", secure.URL: " speaks https, not http"} {
		wrong := strings.NewReplacer("https://", "http://", "http://", "https://").Replace(right)
		c := extracttest.NewClient(t, transport.Config{BaseURL: wrong, Account: "acme", Key: transport.NewSecret(transport.Canary), Retries: 3})
		e := transport.MustAs[*transport.NetworkError](t, countOnly(t.Context(), c))
		if _, host, _ := strings.Cut(right, "://"); !e.Final || e.Problem != host+speaks || !strings.HasPrefix(e.Hint(), "write "+right+" ") {
			t.Errorf("err = %v, hint %s", e, e.Hint())
		}
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestAnswerSizeIsBound, whatever the transaction, also where a small body
// swells when it is decompressed.
func TestAnswerSizeIsBound(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body io.Writer = w
			if compressed {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				defer func() { _ = z.Close() }()
				body = z
			}
			for r.Context().Err() == nil {
				if _, err := io.CopyN(body, endless{}, 64<<10); err != nil {
					return
				}
			}
		}), func(cfg *transport.Config) { cfg.Retries = 0 })
		if *c.Most() != transport.MaxBytes {
			t.Errorf("the bound is %d", *c.Most())
		}
		*c.Most() = 1 << 20
		_, err := c.Results(t.Context(), "form1", extract.ResultsQuery{})
		_, countErr := c.Count(t.Context(), "form1", extract.CountQuery{})
		for _, err := range []error{err, countErr} {
			if e := extracttest.MustAs[*transport.AnswerError](t, err); !strings.Contains(e.Problem, "the most that formetl reads") {
				t.Errorf("err = %v", err)
			}
		}
	}
}

func TestUserAgent(t *testing.T) {
	c := extracttest.Answering(t, "key", func(r *http.Request) (*http.Response, error) {
		if got := r.Header.Get("User-Agent"); got != "formetl/1.2" {
			t.Errorf("asked as %q", got)
		}
		return extracttest.Respond(200, countOf7), nil
	}, func(cfg *transport.Config) { cfg.UserAgent = "formetl/1.2" })
	if err := countOnly(t.Context(), c); err != nil {
		t.Error(err)
	}
}
