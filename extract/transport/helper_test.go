package transport_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

// newClientFor serves h over loopback HTTP and returns a client of it.
func newClientFor(t testing.TB, h http.Handler, change func(*v1.Config)) *v1.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := v1.Config{
		BaseURL: server.URL, Account: formservice.DefaultAccount, Config: transport.Config{
			Key: transport.NewSecret(formservice.DefaultKey), BackoffMin: time.Microsecond, BackoffMax: time.Microsecond, Retries: transport.DefaultRetries,
		},
	}
	if change != nil {
		change(&cfg)
	}
	return newTestClient(t, cfg)
}

func newTestClient(t testing.TB, cfg v1.Config) *v1.Client {
	t.Helper()
	c, err := v1.NewClient(cfg)
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
func transportClient(t testing.TB, f roundTripFunc, change func(*v1.Config)) *v1.Client {
	t.Helper()
	cfg := v1.Config{BaseURL: "https://fs1.example.com", Account: "acme", Config: transport.Config{Key: transport.NewSecret(transport.Canary), Transport: f, Retries: transport.DefaultRetries}}
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

func failure(code string) string {
	return `<fs_response status="error"><error code="` + code + `">the service's words</error></fs_response>`
}

const countOf7 = `<fs_response status="success"><count>7</count></fs_response>`

// lockedBuffer is a log's destination.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// countOnly is any request, for tests of what all requests share.
func countOnly(ctx context.Context, c extract.Service) error {
	_, err := c.Count(ctx, "form1", extract.CountQuery{})
	return err
}

// places tells how many requests are under way, waiters how many wait to be.
func places(c *v1.Client) int { running, _ := c.Places(); return running }

func waiters(c *v1.Client) int { _, waiting := c.Places(); return waiting }

func idsOf(p *page.Page) []int64 {
	ids := make([]int64, p.Len())
	for i := range ids {
		ids[i] = p.ID(i)
	}
	return ids
}
