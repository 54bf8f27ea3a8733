package worker

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/budget"
	"github.com/formetl/formetl/pipelines/definition"
)

const (
	// renewEvery is how often a worker asks for its share while it works.
	renewEvery = shareValid / 2
	// hungryEvery is how often it asks while it may send nothing.
	hungryEvery = 2 * time.Second
	// askNoFaster is the least time between two questions.
	askNoFaster = 200 * time.Millisecond
	// askWithin bounds a question. A worker that gets no answer begins no request.
	askWithin = shareValid
	// silentFor bounds how long a request waits without any answer. Where there are answers
	// and nothing is lent, it waits on, and says so as often.
	silentFor = time.Minute
)

// gates are the gates of a worker process, by account.
type gates struct {
	ask    func(ctx context.Context, account string, a Ask) (Share, error)
	log    *slog.Logger
	worker string // a name for this process

	mu   sync.Mutex
	open map[string]*gate
}

func newGates(ask func(context.Context, string, Ask) (Share, error), log *slog.Logger) *gates {
	return &gates{ask: ask, log: log, worker: rand.Text(), open: map[string]*gate{}}
}

// of returns the gate for a definition's account. Definitions with equal limits share it.
func (g *gates) of(def *definition.Definition) *gate {
	r := def.Source.Requests
	limits := Limits{Concurrency: r.Concurrency, PerMinute: r.PerMinute, PerDay: r.PerDay, Timeout: r.Timeout}
	account := budget.AccountName(def)
	key := fmt.Sprint(account, limits)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[key] == nil {
		g.open[key] = &gate{
			limits: limits, account: account, worker: fmt.Sprintf("%s-%d", g.worker, len(g.open)), log: g.log,
			ask:     func(ctx context.Context, a Ask) (Share, error) { return g.ask(ctx, account, a) },
			changed: make(chan struct{}), asking: make(chan struct{}, 1),
		}
	}
	return g.open[key]
}

// gate bounds the requests of this process to one account by its share. It is the Budget
// of all senders of the account. It asks for a share while somebody wants to send.
type gate struct {
	limits  Limits
	account string
	worker  string
	ask     func(context.Context, Ask) (Share, error)
	log     *slog.Logger

	mu      sync.Mutex
	share   Share
	valid   time.Time // no request begins later
	asked   time.Time // when the last question was sent
	heard   time.Time // when the last answer came
	most    int       // requests under way; less than the share while a question is open
	owes    bool      // more are under way than the share allows by now
	busy    int
	waiting int
	working bool          // the goroutine that asks is there
	changed chan struct{} // closed and replaced when something changes
	asking  chan struct{} // wakes the goroutine that asks
}

// Reserve waits until this process may send one more request.
func (g *gate) Reserve(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	defer func() { g.waiting-- }()
	began := time.Now()
	told := began
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if until := g.share.Until; time.Now().Before(until) {
			return &transport.BudgetError{Limit: g.limits.PerDay, Per: day, Until: until}
		}
		if g.free() {
			g.busy++
			if g.counts() {
				g.share.Booked--
			}
			return nil
		}
		if time.Since(began) >= silentFor && time.Since(g.heard) >= silentFor {
			return &exit.Error{Code: exit.Temporary, Err: fmt.Errorf("the budget of the account was asked for, and did not answer for %s; look for its workflow %s at Temporal, and whether workers poll the task queue %s", silentFor, budgetID(g.account), budgetQueue)}
		}
		if time.Since(told) >= silentFor {
			told = time.Now()
			g.log.LogAttrs(ctx, slog.LevelInfo, "a request still waits for a share of the account's budget", slog.Duration("duration", time.Since(began).Round(time.Second)))
		}
		g.wake()
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(silentFor):
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
}

// Done tells that a request is over.
func (g *gate) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.tell()
	if g.owes && g.busy <= g.share.Slots {
		g.wake() // others wait for it
	}
}

// free tells whether one more request may begin.
func (g *gate) free() bool {
	return g.busy < g.most && time.Now().Before(g.valid) && (!g.counts() || g.share.Booked > 0)
}

// counts tells whether requests are booked.
func (g *gate) counts() bool { return g.limits.PerMinute > 0 || g.limits.PerDay > 0 }

func (g *gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// wake has the goroutine that asks look at once whether to ask.
func (g *gate) wake() {
	if !g.working {
		g.working = true
		go g.work()
	}
	select {
	case g.asking <- struct{}{}:
	default:
	}
}

// work asks for shares while somebody wants to send, and gives the last one back.
func (g *gate) work() {
	ctx := context.Background() // it outlives each activity
	for {
		g.mu.Lock()
		pause := time.Until(g.due())
		if pause > 0 && g.busy+g.waiting == 0 && g.share.Grant == 0 {
			g.working = false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		if pause <= 0 {
			g.renew(ctx)
			continue
		}
		select {
		case <-g.asking:
		case <-time.After(pause):
		}
	}
}

// due returns when the next question is due.
func (g *gate) due() time.Time {
	starved := g.waiting > 0 && (g.most == 0 || g.counts() && g.share.Booked == 0 || !time.Now().Before(g.valid))
	switch {
	case g.owes && g.busy <= g.share.Slots, g.waiting > 0 && g.share.Grant == 0:
		return g.asked.Add(askNoFaster)
	case starved && g.most > 0 && g.share.Again > 0:
		return g.asked.Add(min(max(g.share.Again, askNoFaster), renewEvery))
	case starved:
		return g.asked.Add(hungryEvery)
	}
	return g.asked.Add(renewEvery)
}

// renew asks for a share. Until the answer is there, no more requests are under way than
// the question says.
func (g *gate) renew(ctx context.Context) {
	g.mu.Lock()
	a := Ask{Worker: g.worker, Limits: g.limits, Want: g.busy + g.waiting, Busy: g.busy, Grant: g.share.Grant, Unused: g.share.Booked}
	if !time.Now().Before(g.valid) {
		a.Unused = 0
	}
	sent := time.Now()
	g.share.Booked, g.most, g.asked = 0, min(g.most, g.busy), sent
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	share, err := g.ask(ctx, a)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.log.LogAttrs(ctx, slog.LevelWarn, "the share of the account's requests could not be renewed", slog.String("error", err.Error()))
		return
	}
	g.share, g.most, g.valid, g.owes = share, share.Slots, sent.Add(shareValid), a.Busy > share.Slots
	g.heard = time.Now()
	g.tell()
}
