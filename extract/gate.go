package extract

import (
	"context"
	"sync"
)

// gate bounds the requests under way. The bound falls to half when the
// service is busy and rises by one after a bound's worth of good answers
// (additive increase, multiplicative decrease), never above the configured one.
type gate struct {
	mu      sync.Mutex
	most    int
	limit   float64
	running int
	waiting []chan struct{}
}

func newGate(most int) *gate { return &gate{most: most, limit: float64(most)} }

// enter waits for a place.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.running < int(g.limit) && len(g.waiting) == 0 {
		g.running++
		g.mu.Unlock()
		return ctx.Err()
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.giveUp(turn)
		return ctx.Err()
	}
}

// giveUp takes a waiter out of the line, or passes its place on if it had
// been given one meanwhile.
func (g *gate) giveUp(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
	g.running--
	g.wake()
}

// leave gives the place back. busy tells that the service had no room.
func (g *gate) leave(busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if busy {
		g.limit = max(1, g.limit/2)
	} else {
		g.limit = min(float64(g.most), g.limit+1/g.limit)
	}
	g.running--
	g.wake()
}

func (g *gate) wake() {
	for len(g.waiting) > 0 && g.running < int(g.limit) {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.running++
	}
}
