package transport

import (
	"testing"
	"testing/synctest"
)

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
