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

	mu   sync.Mutex
	idle *sync.Cond
	busy int
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
	b.idle = sync.NewCond(&b.mu)
	silent := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, ErrorLog: silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(b.target)
			r.Out.Host = r.In.Host // it is signed
		},
	}
	b.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.count(1)
		defer b.count(-1)
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

func (b *bucket) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy += n; b.busy == 0 {
		b.idle.Broadcast()
	}
}

// settle waits until the requests of a dead process are done, and drops its
// connections. Its last ones may not be accepted yet: they are once a later one is.
func (b *bucket) settle() {
	b.wait()
	later, err := http.NewRequestWithContext(context.Background(), http.MethodHead, b.URL, http.NoBody)
	if err == nil {
		if answer, err := b.http.Client().Do(later); err == nil {
			_ = answer.Body.Close()
		}
	}
	b.http.CloseClientConnections()
	b.wait()
}

func (b *bucket) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy > 0 {
		b.idle.Wait()
	}
}
