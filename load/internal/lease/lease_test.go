package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/load"
)

// cell is a lease object whose store's clock is the test's.
type cell struct {
	mu      sync.Mutex
	r       Record
	version int
	written time.Time
	there   bool
	noClock bool  // it does not tell ages
	fails   error // of everything
	hang    bool  // writes wait for their context
}

// set changes what the store does.
func (c *cell) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *cell) current() string {
	if !c.there {
		return load.NoVersion
	}
	return fmt.Sprint(c.version)
}

func (c *cell) Read(context.Context) (Record, string, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fails != nil:
		return Record{}, "", 0, c.fails
	case !c.there:
		return Record{}, "", 0, load.ErrNotExist
	case c.noClock:
		return c.r, c.current(), -1, nil
	}
	return c.r, c.current(), time.Since(c.written), nil
}

func (c *cell) Write(ctx context.Context, r Record, version string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if c.fails != nil {
		return "", c.fails
	}
	if version != c.current() {
		return "", load.ErrConflict
	}
	c.r, c.there, c.written = r, true, time.Now()
	c.version++
	return c.current(), nil
}

func (c *cell) Remove(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there = false
	return c.fails
}

// leaseOf makes a lease of run on c.
func leaseOf(c *cell, run string) *Lease {
	return &Lease{
		store: c, times: DefaultTimes(), log: slog.New(slog.DiscardHandler), lost: make(chan struct{}), ended: make(chan struct{}),
		record: Record{Holder: load.Holder{RunID: run}, Token: run},
	}
}

func isLost(l *Lease) bool {
	synctest.Wait()
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		l := leaseOf(c, "run1")
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if isLost(l) || c.r.Renewals != 40 {
			t.Errorf("lost %v, %d renewals in ten minutes", isLost(l), c.r.Renewals)
		}
		var held *load.HeldError
		if err := leaseOf(c, "run2").take(t.Context(), "here"); !errors.As(err, &held) || held.RunID != "run1" {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(l.Release(t.Context()), l.Release(t.Context())); err != nil || c.there || isLost(l) {
			t.Errorf("there %v, %v", c.there, err)
		}
	})
}

// A dead holder's lease is free 60 s after its last renewal, not before.
func TestLeaseExpires(t *testing.T) {
	for _, noClock := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &cell{noClock: noClock}
			dead := leaseOf(c, "dead")
			ctx, kill := context.WithCancel(t.Context())
			if err := dead.take(ctx, "here"); err != nil {
				t.Fatal(err)
			}
			kill() // a run that is stopped keeps its lease
			time.Sleep(16 * time.Second)
			dead.stop() // as kill -9 does
			time.Sleep(59 * time.Second)
			var held *load.HeldError
			if err := leaseOf(c, "run2").take(t.Context(), "here"); !errors.As(err, &held) {
				t.Fatalf("after 60 s: %v", err)
			}
			time.Sleep(3 * time.Second)
			l := leaseOf(c, "run2")
			if err := l.take(t.Context(), "here"); err != nil || c.r.RunID != "run2" {
				t.Errorf("after 63 s: %v, held by %s", err, c.r.RunID)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A holder that another replaced learns it at its next renewal and does not
// take the other's lease away.
func TestLeaseIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		l := leaseOf(c, "run1")
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		c.set(func() { c.r, c.version = Record{Token: "run2"}, c.version+1 })
		time.Sleep(16 * time.Second)
		if !isLost(l) {
			t.Error("not lost")
		}
		if err := l.Release(t.Context()); err != nil || !c.there {
			t.Errorf("there %v, %v", c.there, err)
		}
	})
}

// A store that is away for a while costs nothing; one that stays away, or
// hangs, costs the lease before others can have it.
func TestLeaseCannotBeRenewed(t *testing.T) {
	for _, hang := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &cell{}
			l := leaseOf(c, "run1")
			if err := l.take(t.Context(), "here"); err != nil {
				t.Fatal(err)
			}
			away := func() {
				c.set(func() {
					if c.hang = hang; !hang {
						c.fails = errors.New("away")
					}
				})
			}
			if !hang {
				away()
				time.Sleep(40 * time.Second)
				c.set(func() { c.fails = nil })
				time.Sleep(40 * time.Second)
				if isLost(l) {
					t.Fatal("lost though the store came back in time")
				}
			}
			last := c.written
			away()
			<-l.Lost()
			if after := time.Since(last); after > 52*time.Second || after < 30*time.Second {
				t.Errorf("lost %s after the last renewal", after)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// late is a cell whose answers to writes come so long after the writes.
type late struct {
	*cell
	by atomic.Int64
}

func (s *late) Write(ctx context.Context, r Record, version string) (string, error) {
	version, err := s.cell.Write(ctx, r, version)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(time.Duration(s.by.Load())):
		return version, err
	}
}

// A lease is held from when its renewal was sent, for the store may count from then.
func TestLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		l, s := leaseOf(c, "run1"), &late{cell: c}
		l.store = s
		s.by.Store(int64(10 * time.Second))
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.set(func() { c.fails = errors.New("away") })
		last := c.written
		<-l.Lost()
		if after := time.Since(last); after > 52*time.Second {
			t.Errorf("lost %s after the last renewal was sent", after)
		}
		_ = l.Release(t.Context())
	})
}

// One answer that never comes leaves time for another renewal.
func TestAnswerNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		l, s := leaseOf(c, "run1"), &late{cell: c}
		l.store = s
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		s.by.Store(int64(time.Hour))
		time.Sleep(20 * time.Second)
		s.by.Store(0)
		time.Sleep(time.Minute)
		if isLost(l) {
			t.Error("lost")
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The answer to a renewal is lost, and so is that to the write that takes the lease: the run still
// has it.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		first := leaseOf(c, "run1")
		if _, err := c.Write(t.Context(), first.record, load.NoVersion); err != nil { // it was carried out
			t.Fatal(err)
		}
		l := leaseOf(c, "run1")
		l.record.Token = "again"
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		c.set(func() { c.version++ }) // as a renewal does whose answer does not come
		time.Sleep(time.Minute)
		if isLost(l) {
			t.Error("lost")
		}
		if err := l.Release(t.Context()); err != nil || c.there {
			t.Errorf("there %v, %v", c.there, err)
		}
	})
}

// A process that was stopped for long learns that others may have taken the lease before it does
// anything else.
func TestLeaseOfAStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leaseOf(&cell{}, "run1")
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-time.Minute)
		l.renewed.Store(&long)
		if !isLost(l) {
			t.Error("not lost")
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lease that cannot be given back is left to expire, and that is logged.
func TestLeaseReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &cell{}
		l := leaseOf(c, "run1")
		l.log = slog.New(slog.NewTextHandler(&log, nil))
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		c.set(func() { c.fails = errors.New("away") })
		if err := l.Release(t.Context()); err != nil || !strings.Contains(log.String(), "away") {
			t.Errorf("%v, %s", err, log.String())
		}
	})
}

// The lease is released between the write that fails and the read.
func TestLeaseReleasedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{there: true, version: 7, r: Record{Token: "other"}}
		reads := &vanishing{cell: c}
		l := leaseOf(c, "run1")
		l.store = reads
		if err := l.take(t.Context(), "here"); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// vanishing is a cell whose object goes before the first read.
type vanishing struct {
	*cell
	gone bool
}

func (v *vanishing) Read(ctx context.Context) (Record, string, time.Duration, error) {
	if !v.gone {
		v.gone, v.there = true, false
	}
	return v.cell.Read(ctx)
}

func TestLeaseOfStoreThatFails(t *testing.T) {
	away := errors.New("away")
	if err := leaseOf(&cell{fails: away}, "run1").take(t.Context(), "here"); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

func TestProcess(t *testing.T) {
	me := ThisProcess()
	if me.Gone() || (Process{}).Gone() {
		t.Error("this process is gone")
	}
	reused := me
	reused.Start += "0"
	if me.Start != "" && !reused.Gone() {
		t.Error("a process whose id is another's now is alive")
	}
	neighbour := me
	neighbour.Space, neighbour.PID = "another container", 1<<30
	if neighbour.Gone() {
		t.Error("a process of another container is judged")
	}
	unknown := me
	unknown.Space, unknown.PID = "", 1<<30
	if unknown.Gone() {
		t.Error("a process is judged where nobody knows whether it ran on this system")
	}
	if processStart(-1) != "" {
		t.Error("a process that cannot be has a start")
	}
}
