package crashtest

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// gate stands before an S3 server. A request that came through it whole is
// done whole: who sent it may be dead by then, as with a real network.
type gate struct {
	*httptest.Server
	proxy *httputil.ReverseProxy

	mu   sync.Mutex
	busy int
	idle *sync.Cond
}

func newGate(t testing.TB, target string) *gate {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	g.idle = sync.NewCond(&g.mu)
	silent := log.New(io.Discard, "", 0)
	g.proxy = &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		ErrorLog:  silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		},
		// What the server does not answer is cut off.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(g.serve))
	g.Config.ErrorLog = silent
	g.Start()
	t.Cleanup(g.Close)
	return g
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	g.begin()
	defer g.end()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the sender died in the middle
	}
	whole := r.Clone(context.WithoutCancel(r.Context()))
	whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	g.proxy.ServeHTTP(w, whole)
}

func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
}

func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.idle.Broadcast()
}

// settle waits until the requests of a dead run are done, and drops its
// connections.
func (g *gate) settle() {
	g.wait()
	g.CloseClientConnections()
	g.wait()
}

func (g *gate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy > 0 {
		g.idle.Wait()
	}
}
