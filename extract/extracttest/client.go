package extracttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
	v2 "github.com/formetl/formetl/extract/v2"
)

// Serve serves h over loopback HTTP and returns a client of it, which waits a
// microsecond between attempts. change, unless nil, changes the configuration.
func Serve(t testing.TB, h http.Handler, change func(*transport.Config)) *v1.Client {
	t.Helper()
	return ServeBy(t, formservice.V1, h, change).(*v1.Client)
}

// ServeBy does the same as Serve with a client of one generation, formservice.V1 or V2.
func ServeBy(t testing.TB, generation string, h http.Handler, change func(*transport.Config)) extract.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := transport.Config{
		BaseURL: server.URL, Account: formservice.DefaultAccount, Key: transport.NewSecret(formservice.DefaultKey),
		BackoffMin: time.Microsecond, BackoffMax: time.Microsecond, Retries: transport.DefaultRetries,
	}
	if change != nil {
		change(&cfg)
	}
	if generation == formservice.V1 {
		return NewClient(t, cfg)
	}
	c, err := v2.NewClient(cfg, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Answering returns a client without a network, which holds the key: answer
// answers each request. change, unless nil, changes the configuration.
func Answering(t testing.TB, key string, answer func(*http.Request) (*http.Response, error), change func(*transport.Config)) *v1.Client {
	t.Helper()
	cfg := transport.Config{
		BaseURL: "https://fs1.example.com", Account: "acme", Key: transport.NewSecret(key),
		Transport: RoundTrip(answer), Retries: transport.DefaultRetries,
	}
	if change != nil {
		change(&cfg)
	}
	return NewClient(t, cfg)
}

// NewClient returns a client that is closed when the test ends.
func NewClient(t testing.TB, cfg transport.Config) *v1.Client {
	t.Helper()
	c, err := v1.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// RoundTrip is a transport made of a function.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Respond makes a response; headers are "Name: value".
func Respond(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: h, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1,
	}
}

// Success is the body of an answer of the status "success" (specification,
// section 4) that holds content.
func Success(content string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><fs_response status="success">` + content + `</fs_response>`
}
