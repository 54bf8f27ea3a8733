package crashtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// history is what a dataset held after each run, in order, and will hold after
// the one that is under way.
type history struct {
	mu     sync.Mutex
	truths []rows
}

func (h *history) add(r rows) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.truths = append(h.truths, r)
}

// last is what the last run left, or will leave.
func (h *history) last() rows {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.truths[len(h.truths)-1]
}

// find gives the number of the run that left such rows, -1 for none.
func (h *history) find(r rows) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.truths) - 1; i >= 0; i-- {
		if h.truths[i].equal(r) {
			return i
		}
	}
	return -1
}

// poller reads a dataset again and again.
type poller struct {
	name     string
	read     func(context.Context) (reading, error)
	history  *history
	complete chan int // the run that a complete reading saw, for who waits for it
	ended    chan struct{}
	// What follows is read when the poller has ended.
	readings, changed int
	err               error
}

// poll ends with ctx or with the first reading that no run explains. A reader
// never goes back to an earlier run either.
func (p *poller) poll(ctx context.Context) {
	defer close(p.ended)
	last := 0
	for ctx.Err() == nil {
		r, err := p.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errNothing):
			continue
		case errors.Is(err, errChanged):
			p.changed++
			continue
		case err != nil:
			p.err = err
			return
		}
		p.readings++
		at := p.history.find(r.rows)
		if at < last {
			p.err = fmt.Errorf("run %s holds what no run left, or went back: it is that of run %d after run %d; %s",
				r.run, at, last, r.rows.differs(p.history.last()))
			return
		}
		last = at
		select {
		case p.complete <- at:
		default:
		}
	}
}

// sees waits until the poller has read what the last run left.
func (p *poller) sees(run int) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case at := <-p.complete:
			if at == run {
				return nil
			}
		case <-p.ended:
			return errors.New("it has ended")
		case <-timer.C:
			return errors.New("it never sees the last run")
		}
	}
}

// polling starts readers of a world's dataset; what they met is told at the end.
func polling(t *testing.T, w *world, past *history) []*poller {
	t.Helper()
	pollers := []*poller{
		{name: "the reader of the manifest", read: w.byManifest, history: past, complete: make(chan int), ended: make(chan struct{})},
		{name: "the reader that globs", read: w.byGlob, history: past, complete: make(chan int), ended: make(chan struct{})},
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, p := range pollers {
		go p.poll(ctx)
	}
	t.Cleanup(func() {
		cancel()
		for _, p := range pollers {
			<-p.ended
			t.Logf("%s: %d complete readings, %d that met a change", p.name, p.readings, p.changed)
			if p.err != nil {
				t.Errorf("%s: %v", p.name, p.err)
			}
		}
	})
	return pollers
}
