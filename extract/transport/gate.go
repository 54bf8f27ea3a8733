package transport

import (
	"context"
	"slices"
	"sync"
)

// gate bounds the requests under way at once (additive increase, multiplicative
// decrease). The bound halves when the service is busy. After as many good
// answers as the bound, the bound rises by one, up to Config.Concurrency. It rises
// eight times slower near the number of requests at which the service was last busy.
type gate struct {
	mu      sync.Mutex
	most    int
	limit   float64
	busyAt  float64 // the number of requests at which the service was last busy
	falls   int
	running int
	waiting []chan int
}

const nearBusy = 8 // how many times slower the bound rises near busyAt

func newGate(most int) *gate {
	return &gate{most: most, limit: float64(most), busyAt: float64(most) + 1}
}

// enter waits until one more request may be under way. It returns how often the bound has fallen,
// which the caller passes to leave: of requests that run together, only the first busy one lowers
// the bound.
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

// giveUp removes a waiting request from the queue. If the request has been admitted
// meanwhile, giveUp admits the next one in its place.
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

// leave ends a request; falls is the result of enter. Only OutcomeOK and
// OutcomeBusy change the bound. The outcome "" means that no attempt was made.
func (g *gate) leave(falls int, outcome string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case outcome == OutcomeOK:
		rise := 1 / g.limit
		if g.limit+1 > g.busyAt {
			rise /= nearBusy
		}
		g.limit = min(float64(g.most), g.limit+rise)
	case outcome == OutcomeBusy && falls == g.falls:
		g.busyAt = min(g.limit, float64(g.running))
		g.limit = max(1, g.busyAt/2)
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
