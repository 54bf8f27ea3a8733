package load_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

// aborting counts what is aborted, and refuses what the test says.
type aborting struct {
	*local.Destination
	refuse func(n int, name string) error

	mu sync.Mutex
	n  int
}

func (a *aborting) Abort(ctx context.Context, p load.Prepared) error {
	a.mu.Lock()
	a.n++
	err := a.refuse(a.n, p.Name)
	a.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return a.Destination.Abort(ctx, p)
}

// prepared stages so many objects.
func (s shop) prepared(n int) []load.Prepared {
	s.t.Helper()
	list := make([]load.Prepared, 0, n)
	for i := range n {
		p, err := s.stageNamed("run1", fmt.Sprintf("%03d.csv", i), "text")
		s.must(err)
		list = append(list, p)
	}
	return list
}

// TestAbortAll: one that cannot be aborted does not stop the others, and the
// error is one line, however many there were.
func TestAbortAll(t *testing.T) {
	const all = 30
	for _, c := range []struct {
		refused int
		want    string
	}{
		{0, "<nil>"}, {1, "000.csv: denied"}, {3, "000.csv: denied (and 2 more)"}, {all, "000.csv: denied (and 29 more)"},
	} {
		s := newShop(t)
		list := s.prepared(all)
		a := &aborting{Destination: s.d, refuse: func(_ int, name string) error {
			if name < fmt.Sprintf("%03d", c.refused) {
				return errDenied
			}
			return nil
		}}
		err := load.AbortAll(t.Context(), a, list...)
		if fmt.Sprint(err) != c.want || c.refused > 0 && !errors.Is(err, errDenied) || len(s.names()) != c.refused {
			t.Errorf("%d refused: %v; staged are %v", c.refused, err, s.names())
		}
	}
}

// TestAbortAllIsStopped: no more are begun, and the reason is the stop's, also
// where something was refused besides.
func TestAbortAllIsStopped(t *testing.T) {
	const all, after = 30, 4
	stopped := errors.New("stopped")
	s := newShop(t)
	list := s.prepared(all)
	ctx, cancel := context.WithCancelCause(t.Context())
	a := &aborting{Destination: s.d, refuse: func(n int, _ string) error {
		if n == after {
			cancel(stopped)
			return errDenied
		}
		return nil
	}}
	if err := load.AbortAll(ctx, a, list...); !errors.Is(err, stopped) || errors.Is(err, errDenied) {
		t.Errorf("error %v", err)
	}
	if a.n == all || len(s.names()) == 0 {
		t.Errorf("%d were begun, staged are %v", a.n, s.names())
	}
	begun := a.n
	if err := load.AbortAll(ctx, a, list...); !errors.Is(err, stopped) || a.n != begun {
		t.Errorf("after the stop: %v; %d were begun", err, a.n-begun)
	}
	if err := load.AbortAll(t.Context(), s.d, list...); err != nil || len(s.names()) != 0 {
		t.Errorf("again: %v; staged are %v", err, s.names())
	}
}

type key struct{}

// TestLingering: it outlives its parent by the grace, gives the parent's
// reason then, and ends when it is no longer needed.
func TestLingering(t *testing.T) {
	stopped := errors.New("stopped")
	parent, stop := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	long, endLong := load.Lingering(parent, time.Hour)
	short, endShort := load.Lingering(parent, time.Nanosecond)
	defer endShort()
	unused, endUnused := load.Lingering(parent, time.Hour)
	endUnused()
	if long.Err() != nil || short.Err() != nil || long.Value(key{}) != "value" {
		t.Errorf("before: %v, %v, value %v", long.Err(), short.Err(), long.Value(key{}))
	}
	if !errors.Is(unused.Err(), context.Canceled) || parent.Err() != nil {
		t.Errorf("one that is not needed: %v, its parent %v", unused.Err(), parent.Err())
	}
	stop(stopped)
	<-short.Done()
	if !errors.Is(context.Cause(short), stopped) {
		t.Errorf("after the grace: %v", context.Cause(short))
	}
	if long.Err() != nil {
		t.Errorf("within the grace: %v", long.Err())
	}
	endLong()
	if !errors.Is(long.Err(), context.Canceled) {
		t.Errorf("at its end: %v", long.Err())
	}
}
