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

// moment is a request of a run, counted over the form service and the S3
// server, at which something happens.
type moment struct {
	mu    sync.Mutex
	seen  int
	at    int           // 0: never
	after bool          // when the server has done it and before the run learns of it; only of S3 requests
	act   func()        // called once
	over  chan struct{} // closed when that has returned, or will not be called; nil before the request
}

// arm begins to count anew.
func (m *moment) arm(at int, after bool, act func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.at, m.after, m.act, m.over = 0, at, after, act, nil
}

// disarm ends it, waits until what happens has happened, and tells whether
// the request has come.
func (m *moment) disarm() (came bool) {
	m.mu.Lock()
	m.at = 0
	over := m.over
	m.mu.Unlock()
	if over == nil {
		return false
	}
	<-over
	return true
}

// count counts a request and tells whether it is the one; then done must be
// called when it is done with.
func (m *moment) count() (here, after bool, done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen++
	if m.seen != m.at {
		return false, false, func() {}
	}
	over := make(chan struct{})
	m.over = over
	return true, m.after, func() { close(over) }
}

// come does what is to happen.
func (m *moment) come() {
	m.mu.Lock()
	act := m.act
	m.mu.Unlock()
	act()
}

// total is how many requests were counted since arm.
func (m *moment) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// gate stands before an S3 server. A request that came through it whole is
// done whole: who sent it may be dead by then, as with a real network.
type gate struct {
	*httptest.Server
	moment *moment
	proxy  *httputil.ReverseProxy

	mu     sync.RWMutex
	target *url.URL
	busy   int
	idle   *sync.Cond
}

// afterKey marks a request at whose answer the moment comes.
type afterKey struct{}

func newGate(t testing.TB, m *moment, target string) *gate {
	t.Helper()
	g := &gate{moment: m}
	g.idle = sync.NewCond(&g.mu)
	g.lead(t, target)
	silent := log.New(io.Discard, "", 0)
	g.proxy = &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		ErrorLog:  silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			g.mu.RLock()
			defer g.mu.RUnlock()
			r.SetURL(g.target)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Context().Value(afterKey{}) != nil {
				g.moment.come()
			}
			return nil
		},
		// The server is down: so is the connection.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(g.serve))
	g.Config.ErrorLog = silent
	g.Start()
	t.Cleanup(g.Close)
	return g
}

// lead sends requests to another server from here on.
func (g *gate) lead(t testing.TB, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = u
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	g.begin()
	defer g.end()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the sender died in the middle
	}
	here, after, done := g.moment.count()
	defer done()
	if here && !after {
		g.moment.come()
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if here {
		ctx = context.WithValue(ctx, afterKey{}, true)
	}
	whole := r.Clone(ctx)
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
