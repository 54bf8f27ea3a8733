package toxiproxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/toxiproxy"
)

// get asks anew, with a connection of its own.
func get(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		return "", err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	return string(data), err
}

func TestProxy(t *testing.T) {
	toxiproxy.Need(t)
	ctx := t.Context()
	p, err := toxiproxy.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	text := strings.Repeat("answer ", 1000)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(upstream.Close)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	address, err := p.Forward(ctx, "a store", strings.TrimPrefix(upstream.URL, "http://"))
	must(err)
	wantAnswer := func(when string) {
		t.Helper()
		if got, err := get(ctx, address); err != nil || got != text {
			t.Errorf("%s: %d bytes, %v", when, len(got), err)
		}
	}
	wantAnswer("at first")
	must(p.AddToxic(ctx, "a store", toxiproxy.CutAfter("cut", toxiproxy.Downstream, 1000)))
	if _, err := get(ctx, address); err == nil {
		t.Error("no error through a connection that is cut")
	}
	must(p.RemoveToxic(ctx, "a store", "cut"))
	wantAnswer("after the cut")
	must(p.AddToxic(ctx, "a store", toxiproxy.BlackHole("hole", toxiproxy.Upstream)))
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	if _, err := get(short, address); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a black hole answers: %v", err)
	}
	cancel()
	must(p.Reset(ctx))
	wantAnswer("after the reset")
	must(p.Enable(ctx, "a store", false))
	if _, err := get(ctx, address); err == nil {
		t.Error("no error where the proxy is off")
	}
	must(p.Enable(ctx, "a store", true))
	wantAnswer("after it is on again")
	must(p.AddToxic(ctx, "a store", toxiproxy.Latency("slow", toxiproxy.Upstream, 1, 0)))
	must(p.AddToxic(ctx, "a store", toxiproxy.Bandwidth("narrow", toxiproxy.Downstream, 10_000)))
	wantAnswer("through a slow line")
	must(p.AddToxic(ctx, "a store", toxiproxy.ResetPeer("reset", toxiproxy.Downstream, 0)))
	if _, err := get(ctx, address); err == nil {
		t.Error("no error through a connection that is reset")
	}
	must(p.Unforward(ctx, "a store"))
	if err := p.RemoveToxic(ctx, "a store", "slow"); err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Errorf("a toxic of nothing: %v", err)
	}
}
