package transport_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

// TestObserve: who watches a context is told of each attempt of its requests, the failed
// ones too, and of no others.
func TestObserve(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			_, _ = w.Write([]byte(failure("3")))
			return
		}
		_, _ = w.Write([]byte(countOf7))
	}))
	defer server.Close()
	c, err := v1.NewClient(v1.Config{BaseURL: server.URL, Account: "acme", Config: transport.Config{Key: transport.NewSecret("k"), Retries: -1, BackoffMin: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var mu sync.Mutex
	var seen []transport.Attempt
	watched := transport.Observe(t.Context(), func(a transport.Attempt) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, a)
	})
	for _, ctx := range []context.Context{watched, t.Context(), transport.Observe(watched, func(transport.Attempt) {})} {
		if _, err := c.Fork().Count(ctx, "form1", extract.CountQuery{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Fatalf("%+v", seen)
	}
	for i, outcome := range []string{transport.OutcomeBusy, transport.OutcomeOK} {
		if a := seen[i]; a.Number != i+1 || a.Outcome != outcome || a.Kind != transport.KindCount || a.Start.IsZero() || a.Took <= 0 {
			t.Errorf("attempt %d: %+v", i, a)
		}
	}
	if !seen[0].Start.Before(seen[1].Start) {
		t.Error("the second attempt began before the first")
	}
}
