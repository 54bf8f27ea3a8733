package transport_test

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
)

// underWay counts requests from when they are sent until they are done with:
// as a transport until the body is closed, as a server until the answer is
// written. The server may notice late that its client has left.
type underWay struct {
	http.RoundTripper
	http.Handler

	sent, running, peak atomic.Int64
}

func (u *underWay) begin() {
	u.sent.Add(1)
	transport.Raise(&u.peak, u.running.Add(1))
}

func (u *underWay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.begin()
	defer u.running.Add(-1)
	u.Handler.ServeHTTP(w, r)
}

func (u *underWay) RoundTrip(r *http.Request) (*http.Response, error) {
	u.begin()
	res, err := u.RoundTripper.RoundTrip(r)
	if err != nil {
		u.running.Add(-1)
		return nil, err
	}
	res.Body = &countedBody{ReadCloser: res.Body, u: u}
	return res, nil
}

type countedBody struct {
	io.ReadCloser
	u    *underWay
	once sync.Once
}

func (b *countedBody) Close() error {
	b.once.Do(func() { b.u.running.Add(-1) })
	return b.ReadCloser.Close()
}

// linger lets requests meet each other.
func linger(r *http.Request) {
	timer := time.NewTimer(2 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// TestConcurrencyIsKept at a real server, with every kind of answer, by a
// client and its forks together, whose callers partly do not wait.
func TestConcurrencyIsKept(t *testing.T) {
	const most = 3
	answers := map[string]func(w http.ResponseWriter, r *http.Request){
		"good": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(countOf7)) },
		"busy": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(failure("3"))) },
		"429 with Retry-After": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"503":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"502":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"refused": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(failure("102"))) },
		"not XML": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"reset":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("<fs_resp"))
		},
		"no answer in time": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	names := slices.Collect(maps.Keys(answers))
	answers["all of them"] = func(w http.ResponseWriter, r *http.Request) {
		if rand.IntN(2) == 0 {
			answers["good"](w, r)
			return
		}
		answers[names[rand.IntN(len(names))]](w, r)
	}
	answers["an outage in between"] = func() func(w http.ResponseWriter, r *http.Request) {
		var n atomic.Int64
		return func(w http.ResponseWriter, r *http.Request) {
			if i := n.Add(1); i > 10 && i < 60 {
				panic(http.ErrAbortHandler)
			}
			answers["good"](w, r)
		}
	}()
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leaves := name == "all of them" || name == "no answer in time"
			server := &underWay{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { linger(r); answer(w, r) })}
			client := &underWay{RoundTripper: transport.NewTransport(most)}
			c := extracttest.Serve(t, server, func(cfg *transport.Config) {
				cfg.Concurrency, cfg.Timeout, cfg.Retries, cfg.Transport = most, 5*time.Second, 3, client
				if leaves {
					cfg.Timeout = 30 * time.Millisecond
				}
			})
			var group sync.WaitGroup
			for i := range 30 {
				fork := c.Fork()
				group.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if leaves && i%5 == 0 {
						defer time.AfterFunc(5*time.Millisecond, cancel).Stop()
					}
					_ = countOnly(ctx, fork)
				})
			}
			group.Wait()
			if client.peak.Load() > most || !leaves && server.peak.Load() > most {
				t.Errorf("%d requests were under way at once, %d at the server; the bound is %d", client.peak.Load(), server.peak.Load(), most)
			}
			if client.sent.Load() != attempts(c) || server.sent.Load() == 0 {
				t.Errorf("%d requests sent, %d counted, %d came", client.sent.Load(), attempts(c), server.sent.Load())
			}
			if client.running.Load() != 0 || places(c) != 0 || c.IsProbing() {
				t.Errorf("%d requests and %d places left, probing %v", client.running.Load(), places(c), c.IsProbing())
			}
		})
	}
}
