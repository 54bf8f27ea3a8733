package transport

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGateBound runs many requests with all outcomes and cancellations: never
// more than the bound are under way, and no place is lost.
func TestGateBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 7
		g := newGate(most)
		var running, peak atomic.Int64
		var group sync.WaitGroup
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			arrives, takes := time.Duration(random.IntN(1000))*time.Millisecond, time.Duration(random.IntN(20))*time.Millisecond
			patience, o := time.Duration(random.IntN(3000))*time.Millisecond, []string{OutcomeFailed, OutcomeOK, OutcomeBusy}[random.IntN(3)]
			group.Go(func() {
				time.Sleep(arrives) // virtual
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				falls, err := g.enter(ctx)
				if err != nil {
					return
				}
				Raise(&peak, running.Add(1))
				time.Sleep(takes)
				running.Add(-1)
				g.leave(falls, o)
			})
		}
		group.Wait()
		if peak.Load() > most || peak.Load() < 2 {
			t.Errorf("%d were under way at once, the bound is %d", peak.Load(), most)
		}
		if g.running != 0 || len(g.waiting) != 0 {
			t.Errorf("%d places and %d waiters are left", g.running, len(g.waiting))
		}
		if g.limit < 1 || g.limit > most {
			t.Errorf("the bound is %v", g.limit)
		}
	})
}

// together lets n requests be under way at once and end with o.
func together(t *testing.T, g *gate, n int, o string) {
	t.Helper()
	falls := make([]int, n)
	for i := range falls {
		var err error
		if falls[i], err = g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range falls {
		g.leave(f, o)
	}
}

func TestGateFallsAndRecovers(t *testing.T) {
	g := newGate(8)
	together(t, g, 8, OutcomeBusy)
	if g.limit != 4 {
		t.Fatalf("one round of busy answers lowers the bound to %v, want 4", g.limit)
	}
	together(t, g, 4, OutcomeFailed)
	if g.limit != 4 {
		t.Errorf("failures of the network move the bound to %v", g.limit)
	}
	together(t, g, 1, OutcomeBusy)
	together(t, g, 1, OutcomeBusy)
	if g.limit != 1 {
		t.Errorf("the bound is %v, want 1: it never falls lower", g.limit)
	}
	good := 0
	for ; g.limit < 8; good++ {
		if good > 1000 {
			t.Fatalf("the bound stays at %v", g.limit)
		}
		together(t, g, 1, OutcomeOK)
	}
	if good < 100 {
		t.Errorf("it recovers after %d good answers, though it was busy at one at once", good)
	}
}

// TestGateFindsTheRoom lets a service have room for three of eight: few
// requests may be refused once that is known.
func TestGateFindsTheRoom(t *testing.T) {
	const room, requests = 3, 1000
	g := newGate(8)
	busy := 0
	for done := 0; done < requests; {
		n := int(g.limit)
		falls := make([]int, n)
		for i := range falls {
			falls[i], _ = g.enter(t.Context())
		}
		for i, f := range falls {
			if i < room {
				g.leave(f, OutcomeOK)
				done++
			} else {
				g.leave(f, OutcomeBusy)
				busy++
			}
		}
	}
	t.Logf("%d busy answers to %d good ones", busy, requests)
	if busy > requests/20 {
		t.Errorf("%d busy answers to %d good ones", busy, requests)
	}
}

// TestGateIsFair gives places in the order of arrival.
func TestGateIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		first, _ := g.enter(t.Context())
		var order []int
		for i := range 5 {
			go func() {
				falls, _ := g.enter(t.Context())
				order = append(order, i)
				g.leave(falls, OutcomeOK)
			}()
			synctest.Wait()
		}
		g.leave(first, OutcomeOK)
		synctest.Wait()
		for i, v := range order {
			if i != v {
				t.Fatalf("order %v", order)
			}
		}
	})
}

// TestGateGivesUpAfterItsTurn: a waiter that is cancelled just when it got its
// place passes it on.
func TestGateGivesUpAfterItsTurn(t *testing.T) {
	g := newGate(1)
	falls, _ := g.enter(t.Context())
	turn, next := make(chan int, 1), make(chan int, 1)
	g.waiting = append(g.waiting, turn, next)
	g.leave(falls, OutcomeOK) // turn has the place now
	g.giveUp(turn)
	select {
	case <-next:
	default:
		t.Error("the place was not passed on")
	}
	g.leave(0, OutcomeOK)
	if g.running != 0 {
		t.Errorf("%d running", g.running)
	}
}
