package transport

import (
	"context"
	"slices"
	"sync"
)

// gate bounds the requests under way. The bound falls to half when the
// service is busy, and rises by one after a bound's worth of good answers
// (additive increase, multiplicative decrease). It never exceeds the configured
// one. Close below the level at which the service was busy last it rises
// eight times slower, because every busy answer wastes a request.
type gate struct {
	mu      sync.Mutex
	most    int
	limit   float64
	met     float64 // the level at which the service was busy last
	falls   int
	running int
	waiting []chan int
}

const nearMet = 8 // how many times slower the bound rises there

func newGate(most int) *gate {
	return &gate{most: most, limit: float64(most), met: float64(most) + 1}
}

// enter waits for a place. It returns the number of falls so far, which leave
// wants back: only the first busy answer of those that were under way together
// lowers the bound.
func (g *gate) enter(ctx context.Context) (falls int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	g.mu.Lock()
	if g.running < int(g.limit) && len(g.waiting) == 0 {
		defer g.mu.Unlock()
		g.running++
		return g.falls, nil
	}
	turn := make(chan int, 1)
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case falls = <-turn:
		return falls, nil
	case <-ctx.Done():
		g.giveUp(turn)
		return 0, ctx.Err()
	}
}

// giveUp takes a waiter out of the line, or passes its place on if it had
// been given one meanwhile.
func (g *gate) giveUp(turn chan int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, turn); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return
	}
	g.running--
	g.wake()
}

// leave gives the place back. Of the outcomes OutcomeOK and OutcomeBusy tell
// about the service's room; "" is an attempt that was not made.
func (g *gate) leave(falls int, outcome string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case outcome == OutcomeOK:
		step := 1 / g.limit
		if g.limit+1 > g.met {
			step /= nearMet
		}
		g.limit = min(float64(g.most), g.limit+step)
	case outcome == OutcomeBusy && falls == g.falls:
		g.met = min(g.limit, float64(g.running))
		g.limit = max(1, g.met/2)
		g.falls++
	}
	g.running--
	g.wake()
}

func (g *gate) wake() {
	for len(g.waiting) > 0 && g.running < int(g.limit) {
		g.waiting[0] <- g.falls
		g.waiting = g.waiting[1:]
		g.running++
	}
}
