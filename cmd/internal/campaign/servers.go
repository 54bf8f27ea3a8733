package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// front is an HTTP server that can wait for what a dead process has asked of it.
type front struct {
	*httptest.Server
	underWay atomic.Int64
}

func newFront(answer http.HandlerFunc) *front {
	f := &front{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		f.underWay.Add(1)
		defer f.underWay.Add(-1)
		if q.URL.Path != "/drain" {
			answer(w, q)
		}
	}))
	f.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are cut on purpose
	f.Start()
	return f
}

// drain waits until the requests of a dead process are done, and drops its
// connections. Its last ones may not be accepted yet: they are once a later one is.
func (f *front) drain() {
	if answer, err := f.Client().Head(f.URL + "/drain"); err == nil { //nolint:noctx // it is answered at once
		_ = answer.Body.Close() // it is empty
	}
	f.CloseClientConnections()
	for f.underWay.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

const bucketName = "lake"

// bucket is a bucket of a real S3 server, and a proxy before it of one life's
// own. A request that came through the proxy whole is done whole: who sent it
// may be dead by then, as with a real network.
type bucket struct {
	*front
	folder string // where the server keeps the bucket's objects, as files of their names
}

func newBucket(server *needs.S3) *bucket {
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: server.Address})
			r.Out.Host = r.In.Host // it is signed
		},
	}
	return &bucket{folder: filepath.Join(server.Dir, bucketName), front: newFront(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the sender died in the middle
		}
		whole := r.Clone(context.WithoutCancel(r.Context()))
		whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, whole)
	})}
}

// database is a database of one life's own on a real PostgreSQL server.
type database struct {
	*needs.Postgres
	name string
}

// dsn is how formetl connects, and the life that looks at what it wrote.
func (d *database) dsn() string { return d.DSN(d.name, "sslmode=disable") }

// drain waits until the server is done with the connections of a dead process: what it
// began to commit may be committed yet.
func (d *database) drain() error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		n, err := d.Query("postgres", "SELECT count(*) FROM pg_stat_activity WHERE datname = '"+d.name+"'")
		if err != nil || n == "0\n" {
			return err
		}
	}
	return errors.New("connections of a process that ended stay with the server")
}
