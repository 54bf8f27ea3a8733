package load_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/load"
)

// watched is a destination that tells when it is asked, and gives answers of
// its own besides.
type watched struct {
	load.Destination
	asked        func()              // called after each answer on leftovers or holders
	afterHolders func()              // called after each answer on holders
	extra        []load.Leftover     // listed besides
	unnamed      []load.ScopedHolder // holders besides
	refuse       string              // the staged object that cannot be removed
	loses        bool                // the lease is lost with the first removal
	lost         chan struct{}
	losing       sync.Once

	mu      sync.Mutex
	removed []string // extra ones
}

var errDenied = errors.New("denied")

func (d *watched) Staged(ctx context.Context) ([]load.Leftover, error) {
	left, err := d.Destination.Staged(ctx)
	if d.asked != nil {
		d.asked()
	}
	return append(left, d.extra...), err
}

func (d *watched) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	held, err := d.Destination.Holders(ctx)
	if d.asked != nil {
		d.asked()
	}
	if d.afterHolders != nil {
		d.afterHolders()
	}
	return append(held, d.unnamed...), err
}

func (d *watched) Abort(ctx context.Context, p load.Prepared) error {
	switch {
	case d.loses:
		d.losing.Do(func() { close(d.lost) })
		return errDenied
	case p.Staged == d.refuse:
		return errDenied
	case strings.HasPrefix(p.Staged, "extra"):
		d.mu.Lock()
		defer d.mu.Unlock()
		d.removed = append(d.removed, p.Staged)
		return nil
	}
	return d.Destination.Abort(ctx, p)
}

func (d *watched) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	lease, err := d.Destination.Acquire(ctx, scope, h)
	if err != nil || !d.loses {
		return lease, err
	}
	d.lost = make(chan struct{})
	return losing{lease, d.lost}, nil
}

type losing struct {
	load.Lease
	lost chan struct{}
}

func (l losing) Lost() <-chan struct{} { return l.lost }

// second gives a function that does its work when it is called for the second
// time: load.Clean's first question only tells whether there is anything at
// all, so that is between leftovers and holders, in whatever order.
func second(do func()) func() {
	calls := 0
	return func() {
		if calls++; calls == 2 {
			do()
		}
	}
}

func TestCleanAgainstRunsThatComeAndGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(t *testing.T, s shop) (between func(), check func())
	}{
		{"a run starts between", func(t *testing.T, s shop) (func(), func()) {
			var p load.Prepared
			return func() {
				s.hold("other.csv", "started")
				p = s.leave("started", "other.csv")
			}, func() { s.must(s.d.Check(t.Context(), p)) }
		}},
		{"a run that had staged commits between", func(t *testing.T, s shop) (func(), func()) {
			p, err := s.stageNamed("quick", "other.csv", "whole")
			s.must(err)
			lease, err := s.d.Acquire(t.Context(), "other.csv", load.Holder{RunID: "quick"})
			s.must(err)
			return func() {
					s.must(s.d.Commit(t.Context(), p))
					s.must(lease.Release(t.Context()))
				}, func() {
					if data, _, err := s.d.Get(t.Context(), "other.csv"); string(data) != "whole" {
						t.Errorf("the file holds %q, %v", data, err)
					}
				}
		}},
		{"a run records its commit and dies between", func(t *testing.T, s shop) (func(), func()) {
			lease, err := s.d.Acquire(t.Context(), "other.csv", load.Holder{RunID: "dying"})
			s.must(err)
			p, err := s.stageNamed("dying", "other.csv", "whole")
			s.must(err)
			m := manifest("dying")
			m.Parts, m.Rows = []load.Part{{Path: "other.csv", Rows: 1, MinID: 1, MaxID: 1, Bytes: p.Bytes, SHA256: p.SHA256}}, 1
			return func() {
					hook, _ := killAt(2)
					err := load.Commit{RunID: "dying", File: "other.csv", Manifest: m, Base: load.NoVersion, New: []load.Prepared{p}, Hook: hook}.Do(t.Context(), s.d)
					if !errors.Is(err, errKilled) {
						t.Fatal(err)
					}
					s.must(lease.Release(t.Context()))
				}, func() {
					if r, err := load.Recover(t.Context(), s.d, "other.csv", nil, false); err != nil || !r.Finished {
						t.Errorf("got %+v, %v", r, err)
					}
				}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			s.leave("dead", "form1.csv")
			between, check := c.setup(t, s)
			d := &watched{Destination: s.d, asked: second(between)}
			cleaned, err := load.Clean(t.Context(), d, "form1.csv", cleaner, load.CleanOptions{})
			s.must(err)
			if got := runsOf(cleaned.Removed); !strings.HasPrefix(got, "dead dead") && !strings.HasSuffix(got, "dead dead") {
				t.Errorf("removed those of %q", got)
			}
			check()
		})
	}
}

// A temporary file names no run. It stays while any run is alive.
func TestCleanOfTemporaryFiles(t *testing.T) {
	for _, alive := range []bool{false, true} {
		s := newShop(t)
		if alive {
			s.hold("other.csv", "alive")
		}
		d := &watched{Destination: s.d, extra: []load.Leftover{{Kind: load.Temporary, Path: "temporary", Staged: "extra"}}}
		cleaned, err := load.Clean(t.Context(), d, "form1.csv", cleaner, load.CleanOptions{})
		s.must(err)
		if (len(cleaned.Kept) == 1) != alive || len(d.removed)+len(cleaned.Kept) != 1 {
			t.Errorf("alive %t: removed %v, kept %v", alive, d.removed, cleaned.Kept)
		}
	}
}

// A lease that is held by nobody knows whom keeps everything.
func TestCleanBesideAHolderWithoutAName(t *testing.T) {
	s := newShop(t)
	s.leave("dead", "form1.csv")
	d := &watched{Destination: s.d, unnamed: []load.ScopedHolder{{Scope: "other.csv"}}}
	cleaned, err := load.Clean(t.Context(), d, "form1.csv", cleaner, load.CleanOptions{})
	s.must(err)
	if len(cleaned.Removed) > 0 || len(cleaned.Kept) != 2 {
		t.Errorf("got %+v", cleaned)
	}
}

func TestCleanGoesOnWhereOneCannotBeRemoved(t *testing.T) {
	s := newShop(t)
	parts := s.stageTwo("dead")
	d := &watched{Destination: s.d, refuse: parts[0].Prepared.Staged}
	cleaned, err := load.Clean(t.Context(), d, "", cleaner, load.CleanOptions{})
	if !errors.Is(err, errDenied) || len(cleaned.Removed) != 1 {
		t.Errorf("got %+v, %v", cleaned, err)
	}
	again := s.clean("")
	if len(again.Removed) != 1 {
		t.Errorf("got %+v", again)
	}
	s.same("what is left", s.everything(), nil)
}

func TestCleanStopsWhenItsLeaseIsLost(t *testing.T) {
	s := newShop(t)
	parts := s.stageTwo("dead")
	cleaned, err := load.Clean(t.Context(), &watched{Destination: s.d, loses: true}, "", cleaner, load.CleanOptions{})
	var held *load.HeldError
	if !errors.As(err, &held) || len(cleaned.Removed) > 0 {
		t.Errorf("got %+v, %v; want a HeldError", cleaned, err)
	}
	for _, p := range parts {
		s.must(s.d.Check(t.Context(), p.Prepared))
	}
}

// The lease is lost before unlisted parts are removed: _SUCCESS may be that of the run that has
// it now.
func TestCleanThatLostItsLeaseLeavesSuccess(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	s.must(s.d.Put(t.Context(), "dt=2026-01-07/part-min-max-000007-0000.csv", []byte("unlisted"), load.NoVersion))
	d := &watched{Destination: s.d, loses: true}
	d.afterHolders = func() {
		if d.lost != nil {
			d.losing.Do(func() { close(d.lost) })
		}
	}
	_, err := load.Clean(t.Context(), d, "", cleaner, load.CleanOptions{Unlisted: true})
	if _, held := errors.AsType[*load.HeldError](err); !held {
		t.Errorf("got %v, want a HeldError", err)
	}
	_, err = s.d.Stat(t.Context(), load.SuccessName)
	s.must(err)
}

func TestCleanThatIsStopped(t *testing.T) {
	s := newShop(t)
	s.leave("dead", "form1.csv")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	d := &watched{Destination: s.d, afterHolders: func() { cancel(stopped) }}
	cleaned, err := load.Clean(ctx, d, "form1.csv", cleaner, load.CleanOptions{})
	if err == nil || len(cleaned.Removed) > 0 {
		t.Errorf("got %+v, %v", cleaned, err)
	}
	if again := s.clean("form1.csv"); len(again.Removed) != 2 {
		t.Errorf("the lease was given back, and then %+v was found", again)
	}
}
