package v1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
)

// canary is a key whose encoded forms differ from the plain one.
const canary = "c4n4ry/key+with %special&signs=é"

// newClientFor serves h over loopback HTTP and returns a client of it.
func newClientFor(t testing.TB, h http.Handler, change func(*Config)) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := Config{
		BaseURL: server.URL, Account: formservice.DefaultAccount, Config: transport.Config{
			Key: transport.NewSecret(formservice.DefaultKey), BackoffMin: time.Microsecond, BackoffMax: time.Microsecond, Retries: transport.DefaultRetries,
		},
	}
	if change != nil {
		change(&cfg)
	}
	return newTestClient(t, cfg)
}

func newTestClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// roundTripFunc is a transport made of a function.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// transportClient has no network: f answers.
func transportClient(t testing.TB, f roundTripFunc, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{BaseURL: "https://fs1.example.com", Account: "acme", Config: transport.Config{Key: transport.NewSecret(canary), Transport: f, Retries: transport.DefaultRetries}}
	if change != nil {
		change(&cfg)
	}
	return newTestClient(t, cfg)
}

// respond makes a response; headers are "Name: value".
func respond(status int, body string, headers ...string) *http.Response {
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

func success(content string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><fs_response status="success">` + content + `</fs_response>`
}

func mustAs[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("err = %v (%T), want a %T", err, err, e)
	}
	return e
}

// wallTime parses a wall-clock time.
func wallTime(t testing.TB, s string) time.Time {
	t.Helper()
	layout := extract.WireTime
	if len(s) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	v, err := time.Parse(layout, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func day(t testing.TB, from, to string) extract.Window {
	t.Helper()
	return extract.Window{From: wallTime(t, from), To: wallTime(t, to)}
}

// countOnly is any request, for tests of what all requests share.
func countOnly(ctx context.Context, c *Client) error {
	_, err := c.Count(ctx, "form1", extract.CountQuery{})
	return err
}
