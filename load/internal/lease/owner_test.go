package lease

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/load"
)

// ownedLease makes a lease of a run of the owner "flow". Each process has a token of its own.
func ownedLease(c *cell, run, token string) *Lease {
	l := leaseOf(c, run)
	l.record.Owner, l.record.Token = "flow", token
	return l
}

// TestLeaseOfOwner holds that processes of one owner renew one lease side by side, that it
// outlives each of them, and that it keeps other runs away until it expires.
func TestLeaseOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		a, b := ownedLease(c, "run1", "a"), ownedLease(c, "run1", "b")
		if err := errors.Join(a.take(t.Context(), "here"), b.take(t.Context(), "here")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if isLost(a) || isLost(b) {
			t.Fatalf("lost: %v and %v", isLost(a), isLost(b))
		}
		if err := a.Leave(t.Context()); err != nil || !c.exists() {
			t.Fatalf("there %v, %v", c.exists(), err)
		}
		time.Sleep(2 * time.Minute)
		stranger := func() error { return leaseOf(c, "run2").take(t.Context(), "here") }
		if held, ok := errors.AsType[*load.HeldError](stranger()); !ok || held.Owner != "flow" || isLost(b) {
			t.Fatalf("held %v, lost %v", ok, isLost(b))
		}
		if err := errors.Join(b.Leave(t.Context()), b.Release(t.Context())); err != nil || !c.exists() {
			t.Fatalf("there %v, %v", c.exists(), err)
		}
		time.Sleep(63 * time.Second)
		last := leaseOf(c, "run2")
		if err := last.take(t.Context(), "here"); err != nil {
			t.Errorf("nobody renewed it: %v", err)
		}
		if err := last.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaseOfLaterRun holds that a process of an earlier run loses the lease to the next
// run of its owner, and that it notices when the last one has given it back.
func TestLeaseOfLaterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		old, late := ownedLease(c, "run1", "a"), ownedLease(c, "run2", "b")
		if err := errors.Join(old.take(t.Context(), "here"), late.take(t.Context(), "here")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(16 * time.Second)
		if !isLost(old) || isLost(late) {
			t.Errorf("lost: the old %v, the late %v", isLost(old), isLost(late))
		}
		same := ownedLease(c, "run2", "c")
		if err := errors.Join(same.take(t.Context(), "here"), late.Release(t.Context())); err != nil || c.exists() {
			t.Fatalf("there %v, %v", c.exists(), err)
		}
		time.Sleep(16 * time.Second)
		if !isLost(same) {
			t.Error("a lease that was given back is still held")
		}
	})
}

// TestLeaseOfManyAtOnce holds that processes of a run which begin at the same moment all
// have the lease, by one write, and renew it in time.
func TestLeaseOfManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cell{}
		var all [20]*Lease
		var group sync.WaitGroup
		for i := range all {
			all[i] = ownedLease(c, "run1", fmt.Sprint(i))
			group.Go(func() {
				if err := all[i].take(t.Context(), "here"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := c.writes(); n != 1 {
			t.Errorf("%d writes", n)
		}
		time.Sleep(14 * time.Second) // nobody has renewed it yet
		late := ownedLease(c, "run1", "late")
		if err := late.take(t.Context(), "here"); err != nil || c.writes() != 1 {
			t.Errorf("%v; %d writes", err, c.writes())
		}
		for _, l := range all {
			if err := l.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(10 * time.Minute)
		if isLost(late) {
			t.Error("the lease that was joined is lost")
		}
		if err := late.Release(t.Context()); err != nil || c.exists() {
			t.Errorf("%v; there %v", err, c.exists())
		}
	})
}
