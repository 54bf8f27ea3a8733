package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/formetl/formetl/load/loadtest/s3server"
)

const bucketName = "lake"

// bucket is a bucket of a real S3 server, and a proxy before it of one life's
// own. A request that came through the proxy whole is done whole: who sent it
// may be dead by then, as with a real network.
type bucket struct {
	URL    string
	folder string // where the server keeps the bucket's objects, as files of their names
	target *url.URL
	http   *httptest.Server

	underWay underWay
}

// startS3 starts the server over a folder, with a bucket.
func startS3(ctx context.Context, dir string) (*s3server.Server, error) {
	if err := os.MkdirAll(filepath.Join(dir, bucketName), 0o750); err != nil {
		return nil, err
	}
	return s3server.Start(ctx, s3server.Versitygw(), dir, nil)
}

// newBucket gives a life its proxy.
func newBucket(server *s3server.Server) (*bucket, error) {
	target, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	b := &bucket{folder: filepath.Join(server.Dir, bucketName), target: target}
	silent := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, ErrorLog: silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(b.target)
			r.Out.Host = r.In.Host // it is signed
		},
	}
	b.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.underWay.begin()
		defer b.underWay.end()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the sender died in the middle
		}
		whole := r.Clone(context.WithoutCancel(r.Context()))
		whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, whole)
	}))
	b.http.Config.ErrorLog = silent
	b.http.Start()
	b.URL = b.http.URL
	return b, nil
}

// settle waits until the requests of a dead process are done, and drops its
// connections. Its last ones may not be accepted yet: they are once a later one is.
func (b *bucket) settle() {
	b.underWay.wait()
	later, err := http.NewRequestWithContext(context.Background(), http.MethodHead, b.URL, http.NoBody)
	if err == nil {
		if answer, err := b.http.Client().Do(later); err == nil {
			_ = answer.Body.Close()
		}
	}
	b.http.CloseClientConnections()
	b.underWay.wait()
}

// underWay counts requests that are under way. Unlike a sync.WaitGroup, it may be waited
// for while others begin.
type underWay struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n comes to 0
}

func (u *underWay) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n++; u.n == 1 {
		u.idle = make(chan struct{})
	}
}

func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 {
		close(u.idle)
	}
}

// wait waits until nothing is under way.
func (u *underWay) wait() {
	u.mu.Lock()
	idle, busy := u.idle, u.n > 0
	u.mu.Unlock()
	if busy {
		<-idle
	}
}
