package transport

import (
	"context"
	"slices"
	"sync"
)

// gate bounds the requests under way. The bound halves when the service is busy,
// and rises by one after a bound's worth of good answers (additive increase,
// multiplicative decrease), up to the configured one. It rises eight times slower
// close below the level at which the service was busy last.
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

// enter waits for a place. It returns the number of falls so far for leave. Of
// the requests under way together only the first busy one lowers the bound.
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

// giveUp takes a waiter out of the line. It passes on a place that the waiter was
// given meanwhile.
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

// leave gives the place back. Only OutcomeOK and OutcomeBusy move the bound; "" is
// an attempt that was not made.
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
