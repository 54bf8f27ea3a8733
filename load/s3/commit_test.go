package s3

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// lossy does a request and loses its answer, once for each that is wanted.
type lossy struct {
	aws.HTTPClient
	wants func(*http.Request) bool
	left  atomic.Int32
}

// Do loses the answer of what is wanted.
func (l *lossy) Do(r *http.Request) (*http.Response, error) {
	answer, err := l.HTTPClient.Do(r)
	if err != nil || !l.wants(r) || l.left.Add(-1) < 0 {
		return answer, err
	}
	_, _ = io.Copy(io.Discard, answer.Body) // the request is done
	_ = answer.Body.Close()
	return nil, syscall.ECONNRESET
}

// losing opens a destination that loses the answers of n requests.
func (s server) losing(t *testing.T, prefix string, n int32, wants func(*http.Request) bool) (*Destination, *lossy) {
	d := s.open(t, prefix)
	if _, err := d.conditions(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := d.client.Options()
	l := &lossy{HTTPClient: o.HTTPClient, wants: wants}
	l.left.Store(n)
	o.HTTPClient, d.patient = l, l
	o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, time.Millisecond)
	d.client = awss3.New(o)
	return d, l
}

// The SDK sends again what was done already; that is no conflict.
func TestAnswerLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		t.Run("complete", func(t *testing.T) {
			d, l := s.losing(t, "lost-complete", 1, func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") })
			p := stage(t, d, "x.csv", []byte("content"))
			if err := d.Commit(t.Context(), p); err != nil || l.left.Load() >= 1 {
				t.Fatalf("%d left, %v", l.left.Load(), err)
			}
			if got := strings.Join(names(t, d), " "); got != "x.csv" {
				t.Errorf("holds %s", got)
			}
		})
		put := func(r *http.Request) bool { return r.Method == http.MethodPut }
		t.Run("put if absent", func(t *testing.T) {
			d, l := s.losing(t, "lost-put", 1, put)
			if err := d.Put(t.Context(), "m.json", []byte("1"), load.NoVersion); err != nil || l.left.Load() >= 1 {
				t.Fatalf("%d left, %v", l.left.Load(), err)
			}
			if err := d.Put(t.Context(), "m.json", []byte("1"), load.NoVersion); !errors.Is(err, load.ErrConflict) {
				t.Errorf("equal content put by another is %v", err)
			}
		})
		t.Run("put if it matches", func(t *testing.T) {
			d, l := s.losing(t, "lost-match", 0, put)
			if err := d.Put(t.Context(), "m.json", []byte("1"), load.AnyVersion); err != nil {
				t.Fatal(err)
			}
			_, version, err := d.Get(t.Context(), "m.json")
			if err != nil {
				t.Fatal(err)
			}
			l.left.Store(1)
			if err := d.Put(t.Context(), "m.json", []byte("2"), version); err != nil || l.left.Load() >= 1 {
				t.Fatalf("%d left, %v", l.left.Load(), err)
			}
		})
		t.Run("empty object", func(t *testing.T) {
			d, _ := s.losing(t, "lost-empty", 1, put)
			if err := d.Commit(t.Context(), stage(t, d, "x.csv", nil)); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// A Complete that is refused because the name is taken leaves no upload.
func TestRefusedCompleteIsAborted(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "taken")
		p := stage(t, d, "x.csv", []byte("mine"))
		if err := d.Put(t.Context(), "x.csv", []byte("theirs"), load.NoVersion); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrConflict) {
				t.Fatalf("got %v", err)
			}
			if got := strings.Join(names(t, d), " "); got != "x.csv" {
				t.Errorf("left %s", got)
			}
		}
	})
}

// An empty object meets another one.
func TestEmptyObjectConflicts(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "empty")
		if err := d.Put(t.Context(), "x.csv", []byte("theirs"), load.NoVersion); err != nil {
			t.Fatal(err)
		}
		p := stage(t, d, "x.csv", nil)
		if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrConflict) {
			t.Errorf("got %v", err)
		}
		p.Replace = true
		if err := d.Commit(t.Context(), p); err != nil {
			t.Error(err)
		}
		if data, _, err := d.Get(t.Context(), "x.csv"); err != nil || len(data) != 0 {
			t.Errorf("%q, %v", data, err)
		}
	})
}

// Real servers honour every condition; the probe leaves nothing.
func TestProbe(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "probe")
		c, err := d.conditions(t.Context())
		if want := (conditions{put: true, complete: true}); err != nil || c != want {
			t.Errorf("got %+v, %v", c, err)
		}
		if honours, err := d.HonoursConditions(t.Context()); err != nil || !honours {
			t.Errorf("it honours conditions: %t, %v", honours, err)
		}
		if left := names(t, d); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
	d, err := New(t.Context(), "s3://bucket/x", Options{}) // AWS is not asked
	if err != nil {
		t.Fatal(err)
	}
	if c, err := d.conditions(t.Context()); err != nil || !c.put || !c.complete {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A store that ignores conditions gets the second best, and it is said once.
func TestWithoutConditions(t *testing.T) {
	for _, says := range []int{0, http.StatusNotImplemented} {
		var log bytes.Buffer
		f, d := fakeDestination(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		f.refuse = func(r *http.Request) (int, string, http.Header) {
			if says != 0 && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "") {
				return says, "NotImplemented", nil
			}
			return 0, "", nil
		}
		ctx := t.Context()
		if honours, err := d.HonoursConditions(ctx); err != nil || honours {
			t.Errorf("it honours conditions: %t, %v", honours, err)
		}
		if err := d.Put(ctx, "m.json", []byte("1"), load.NoVersion); err != nil {
			t.Fatal(err)
		}
		if err := d.Put(ctx, "m.json", []byte("2"), load.NoVersion); !errors.Is(err, load.ErrConflict) {
			t.Errorf("put over it gives %v", err)
		}
		_, version, err := d.Get(ctx, "m.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Put(ctx, "m.json", []byte("2"), version); err != nil {
			t.Error(err)
		}
		if err := d.Put(ctx, "m.json", []byte("3"), version); !errors.Is(err, load.ErrConflict) {
			t.Errorf("put of an old version gives %v", err)
		}
		first, second, third := stage(t, d, "x.csv", []byte("first")), stage(t, d, "x.csv", []byte("second")), stage(t, d, "x.csv", []byte("first"))
		if err := errors.Join(d.Commit(ctx, first), d.Commit(ctx, first), d.Commit(ctx, third)); err != nil {
			t.Error(err)
		}
		if err := d.Commit(ctx, second); !errors.Is(err, load.ErrConflict) {
			t.Errorf("commit over it gives %v", err)
		}
		if err := errors.Join(d.Commit(ctx, stage(t, d, "e.csv", nil)), d.Commit(ctx, stage(t, d, "e.csv", nil))); err != nil {
			t.Error(err)
		}
		if len(f.uploads) != 0 || len(f.objects) != 3 {
			t.Errorf("%d uploads and %d objects are left", len(f.uploads), len(f.objects))
		}
		if n := strings.Count(log.String(), "does not honour conditional writes"); n != 1 {
			t.Errorf("said %d times: %s", n, log.String())
		}
	}
}

// Another writer's object that appears between the write and the look is a
// conflict on a store that ignores conditions.
func TestOverwrittenAtOnce(t *testing.T) {
	f, d := fakeDestination(t, nil)
	if _, err := d.conditions(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.refuse = func(r *http.Request) (int, string, http.Header) {
		if r.Method == http.MethodHead {
			f.objects[r.URL.Path] = fakeObject{data: []byte("theirs"), id: "OTHER", changed: f.now}
		}
		return 0, "", nil
	}
	if err := d.Put(t.Context(), "m.json", []byte("mine"), load.NoVersion); !errors.Is(err, load.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
