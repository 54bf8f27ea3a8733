package transport_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
)

// TestWhatStandsBetween holds that what stands between formetl and the service is called by
// its name, with the variable that helps: proxies, certificates and encodings.
func TestWhatStandsBetween(t *testing.T) {
	answer := func(status int, header, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "\x1b\x03\x80some bytes")
		}
	}
	proxy := func(status int) string {
		p := httptest.NewServer(answer(status, "Content-Type", "text/html"))
		t.Cleanup(p.Close)
		return strings.Replace(p.URL, "http://", "http://someone:secret@", 1)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	const faraway = "https://fs1.example.invalid"
	for _, c := range []struct {
		name, base, variable, proxy string
		header, value               string
		want                        []string
		temporary                   bool
	}{
		{name: "CONNECT asks for a password", base: faraway, variable: "HTTPS_PROXY", proxy: proxy(407), want: []string{"the proxy in HTTPS_PROXY", "407 Proxy Authentication Required", "user", "HTTPS_PROXY"}},
		{name: "CONNECT is forbidden", base: faraway, variable: "HTTPS_PROXY", proxy: proxy(403), want: []string{"the proxy in HTTPS_PROXY", "403 Forbidden", "NO_PROXY"}},
		{name: "CONNECT fails", base: faraway, variable: "HTTPS_PROXY", proxy: proxy(502), want: []string{"the proxy in HTTPS_PROXY", "502 Bad Gateway"}, temporary: true},
		{name: "CONNECT is too many", base: faraway, variable: "HTTPS_PROXY", proxy: proxy(429), want: []string{"the proxy in HTTPS_PROXY", "429 Too Many Requests"}, temporary: true},
		{name: "plain HTTP asks for a password", base: "http://fs1.example.invalid", variable: "HTTP_PROXY", proxy: proxy(407), want: []string{"the proxy in HTTP_PROXY", "407", "user"}},
		{name: "nobody listens", base: faraway, variable: "HTTPS_PROXY", proxy: closed.URL, want: []string{"the proxy in HTTPS_PROXY", "127.0.0.1", "refused", "HTTPS_PROXY"}, temporary: true},
		{name: "unknown proxy", base: faraway, variable: "HTTPS_PROXY", proxy: "http://proxy.example.invalid:3128", want: []string{"the proxy in HTTPS_PROXY", "proxy.example.invalid"}, temporary: true},
		{name: "no address", base: faraway, variable: "HTTPS_PROXY", proxy: "http://someone:se%cret@pro xy:port", want: []string{"HTTPS_PROXY", "cannot be read"}},
		{name: "no address, lower case", base: faraway, variable: "https_proxy", proxy: "http://[::1:3128", want: []string{"HTTPS_PROXY", "cannot be read"}},
		{name: "no address but a scheme", base: faraway, variable: "HTTPS_PROXY", proxy: "http://", want: []string{"HTTPS_PROXY", "cannot be read"}},
		{name: "no address for plain HTTP", base: "http://fs1.example.invalid", variable: "HTTP_PROXY", proxy: "%zz", want: []string{"HTTP_PROXY", "cannot be read"}},
		{name: "brotli", header: "Content-Encoding", value: "br", want: []string{`compressed as "br"`, "gzip", "NO_PROXY"}},
		{name: "deflate", header: "Content-Encoding", value: "deflate", want: []string{`compressed as "deflate"`}},
		{name: "zstd", header: "Content-Encoding", value: "zstd", want: []string{`compressed as "zstd"`}},
		{name: "two encodings", header: "Content-Encoding", value: "gzip, br", want: []string{`compressed as "gzip, br"`}},
		{name: "charset of Japan", header: "Content-Type", value: "text/xml; charset=Shift_JIS", want: []string{`charset "Shift_JIS"`, "UTF-8"}},
		{name: "charset with controls", header: "Content-Type", value: `text/xml; charset="a\[31m` + strings.Repeat("x", 500) + `"`, want: []string{"charset"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
				t.Setenv(name, "")
				t.Setenv(strings.ToLower(name), "")
			}
			if c.variable != "" {
				t.Setenv(c.variable, c.proxy)
			}
			base := c.base
			if c.header != "" {
				handler := answer(200, c.header, c.value)
				if c.header == "Content-Type" {
					handler = func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set(c.header, c.value)
						_, _ = io.WriteString(w, `<fs_response status="success"/>`)
					}
				}
				s := httptest.NewServer(handler)
				defer s.Close()
				base = s.URL
			}
			client := extracttest.NewClient(t, transport.Config{BaseURL: base, Account: "acme", AllowHTTP: true, Key: transport.NewSecret(transport.Canary), Retries: 2, BackoffMin: time.Microsecond, BackoffMax: time.Microsecond})
			err := countOnly(t.Context(), client)
			if err == nil || transport.Temporary(err) != c.temporary {
				t.Fatalf("err = %v, temporary %v", err, transport.Temporary(err))
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not name %q", err, want)
				}
			}
			for _, hidden := range []string{":secret", "se%cret", "someone", "some bytes", "\x1b", strings.Repeat("x", 100)} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("%v holds %q", err, hidden)
				}
			}
			if _, config := errors.AsType[*transport.Error](err); config != strings.Contains(c.name, "no address") {
				t.Errorf("%T is a fault of the configuration: %v", err, config)
			}
			transport.HidesKey(t, "error", err.Error())
		})
	}
}
