package extract_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
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
	return extract.Window{wallTime(t, from), wallTime(t, to)}
}

func idsOf(p *page.Page) []int64 {
	ids := make([]int64, p.Len())
	for i := range ids {
		ids[i] = p.ID(i)
	}
	return ids
}
