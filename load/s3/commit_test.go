package s3

import (
	"errors"
	"io"
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
	d.honours.Store(true)
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

// TestConditions: real servers honour the conditions of writes, which is asked once and leaves
// nothing. AWS is not asked. A store that ignores conditions, or does not know them, is refused.
func TestConditions(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "conditions")
		l, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run1"})
		if err != nil || !d.honours.Load() {
			t.Fatalf("it honours conditions: %t, %v", d.honours.Load(), err)
		}
		if err := l.Release(t.Context()); err != nil || len(names(t, d)) != 0 {
			t.Errorf("left %v, %v", names(t, d), err)
		}
	})
	for ignored, says := range map[string]int{"If-None-Match If-Match": 0, "If-Match": 0, "none": http.StatusNotImplemented} {
		f, d := fakeDestination(t, nil)
		f.ignores = strings.Fields(ignored)
		f.refuse = func(r *http.Request) (int, string, http.Header) {
			if says != 0 && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "") {
				return says, "NotImplemented", nil
			}
			return 0, "", nil
		}
		_, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run1"})
		refusal(t, err, load.ErrUnusable, "the store ignores the conditions of writes", "supports If-None-Match and If-Match")
		if err := d.Put(t.Context(), "m.json", []byte("1"), load.NoVersion); !errors.Is(err, load.ErrUnusable) {
			t.Errorf("put gives %v", err)
		}
		if len(f.objects) != 0 {
			t.Errorf("left %v", f.objects)
		}
		d.custom = false
		if says == 0 {
			if err := d.Put(t.Context(), "m.json", []byte("1"), load.NoVersion); err != nil {
				t.Errorf("AWS is asked: %v", err)
			}
		}
	}
}
