package pipelines

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

const (
	// lentFor is how long requests are reserved ahead of their use. For as long, requests that
	// a killed process had reserved are lent to no other. Where the state is so slow that a
	// reservation ends before it is known, the next one is twice as long, up to mostLent.
	lentFor, mostLent = 5 * time.Second, 80 * time.Second
	// paceFor is the time for which a process reserves requests, at the pace of its last ones.
	paceFor = 3 * time.Second
	// again is how long a process waits that gets nothing because others have reserved
	// requests, which they may give back.
	again = time.Second
	// longWait is the least wait for the budget that ClientOptions.Waits is told of. Shorter
	// waits come with almost every request if a budget is used evenly.
	longWait = 5 * time.Second
	// remoteMargin is added to a budget's minute where hosts share the budget in a bucket,
	// because each host knows the bucket's clock only to a second.
	remoteMargin = 2 * time.Second

	// setAgain is how long a host uses what it knows of a bucket's clock before it looks again.
	setAgain = time.Hour

	day = 24 * time.Hour
)

// sharedBudget bounds the requests to an account in any minute and in any 24 hours, for all
// processes that share the state. Where a minute's requests are used up, further ones wait.
// Where those of a day are used up, further ones fail with a *transport.BudgetError.
//
// A process reserves requests for a few seconds ahead, at its own pace, so that one write of
// the ledger is for many requests. With the next write it books those that it used, and gives
// back the rest.
//
// Times are those of the state: the clock of this machine for a folder, and that of the store
// for a bucket. If the machine's clock is set back, bookings count for longer, never shorter.
type sharedBudget struct {
	limits limits
	ledger ledger
	id     string           // id of this sharedBudget in the ledger
	here   func() time.Time // clock of this machine
	ahead  atomic.Int64     // nanoseconds that the state's clock is ahead of this machine's
	waits  func(perMinute int, until time.Time)

	mutex    chan struct{} // holds an element while a goroutine uses what follows
	left     int           // number of requests that are reserved and not used
	until    time.Time     // when the reservation ends
	used     []time.Time   // times of the requests since the last write of the ledger
	since    time.Time     // time of the last write of the ledger
	signed   int64         // loan.Until of the last write that is known to have been carried out
	told     time.Time     // the last moment that waits was called with
	clockSet time.Time     // when the state's clock was last asked for, by this machine's clock
}

// limits are how many requests a definition allows per minute and per day. 0 is no limit.
type limits struct {
	perMinute, perDay int
	minute            time.Duration // how long a request counts against perMinute
}

// newBudget returns the budget of a definition's account, nil if the definition sets no limits.
// now is the clock of this machine. waits is called when requests begin to wait for long, once
// for all requests that wait for the same moment. waits may be nil.
func newBudget(def *definition.Definition, state checkpoint.State, now func() time.Time, waits func(perMinute int, until time.Time)) transport.Budget {
	l := limitsOf(def, state)
	if l.perMinute <= 0 && l.perDay <= 0 {
		return nil
	}
	return &sharedBudget{mutex: make(chan struct{}, 1), limits: l, ledger: ledgerOf(def, state), id: cryptorand.Text()[:8], here: now, waits: waits}
}

func limitsOf(def *definition.Definition, state checkpoint.State) limits {
	l := limits{perMinute: def.Source.Requests.PerMinute, perDay: def.Source.Requests.PerDay, minute: transport.BudgetMinute}
	if state.Remote() {
		l.minute += remoteMargin
	}
	return l
}

// now returns the time by the state's clock: this machine's time plus how far a bucket's clock
// is ahead.
func (b *sharedBudget) now() time.Time { return wall(b.here()).Add(time.Duration(b.ahead.Load())) }

// wall returns a time without its monotonic part, which stands still while a machine sleeps.
func wall(at time.Time) time.Time { return at.Round(0) }

// setClock finds out how far a bucket's clock is ahead, from the time of an object that it
// writes for this.
func (b *sharedBudget) setClock(ctx context.Context) error {
	state, name := b.ledger.state, "clock"
	if !state.Remote() || wall(b.here()).Sub(b.clockSet).Abs() < setAgain {
		return nil
	}
	return state.Try(ctx, func() error {
		began := wall(b.here())
		err := state.Put(ctx, name, []byte("\n"), load.AnyVersion)
		var written load.Object
		if err == nil {
			written, err = state.Stat(ctx, name)
		}
		if err == nil { // times of a store are cut to whole seconds
			b.clockSet = wall(b.here())
			middle := began.Add(b.clockSet.Sub(began) / 2)
			b.ahead.Store(int64(written.Changed.Add(time.Second / 2).Sub(middle)))
		}
		return err
	})
}

// local converts a moment by the state's clock to one by this machine's clock.
func (b *sharedBudget) local(at time.Time) time.Time { return at.Add(-time.Duration(b.ahead.Load())) }

// Reserve books one request. It waits while the budget of the minute is used up. The error is
// a *transport.BudgetError if that of the day is.
func (b *sharedBudget) Reserve(ctx context.Context) error {
	var waited time.Time // the moment for which the request has waited
	now := func() time.Time {
		now := b.now()
		// The clock was set back or stands still, and a request must not wait for ever.
		if now.Before(waited) {
			return waited
		}
		return now
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		free, err := b.reserve(ctx, now)
		if err != nil || free.IsZero() {
			return err
		}
		wait := free.Sub(now())
		waited = free
		if err := load.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// reserve uses one of the reserved requests, or reserves some first. If no request is free, it
// returns when to ask again.
func (b *sharedBudget) reserve(ctx context.Context, now func() time.Time) (free time.Time, err error) {
	select {
	case b.mutex <- struct{}{}:
		defer func() { <-b.mutex }()
	case <-ctx.Done():
		return free, context.Cause(ctx)
	}
	if err := b.setClock(ctx); err != nil {
		return free, err
	}
	for length := lentFor; ; length = min(2*length, mostLent) {
		at := now()
		if b.left > 0 && at.Before(b.until) {
			b.left--
			b.used = append(b.used, at)
			return time.Time{}, nil
		}
		if free, err = b.lend(ctx, now, length); err != nil {
			return free, err
		}
		if b.left == 0 {
			b.tell(now(), free)
			return free, nil
		}
	}
}

// lend reserves requests in the ledger for a time of the given length. If no request is free,
// it returns when to ask again.
func (b *sharedBudget) lend(ctx context.Context, now func() time.Time, length time.Duration) (free time.Time, err error) {
	want := b.want(now())
	var refused error
	err = b.write(ctx, func(r *record) bool {
		at := now()
		r.bookUsed(at, b.id, b.used)
		r.trim(at, b.limits)
		b.left, free, refused = r.lend(at, want, b.limits)
		b.since, b.until = at, at.Add(length)
		if r.Lent == nil {
			r.Lent = map[string]loan{}
		}
		r.Lent[b.id] = loan{N: b.left, Until: b.until.UnixMilli()}
		return b.left > 0 || len(b.used) > 0 || refused != nil || r.moved
	})
	if err != nil {
		b.left = 0
		return free, err
	}
	b.used = nil
	if over, ok := errors.AsType[*transport.BudgetError](refused); ok {
		over.Until = b.local(over.Until)
	}
	return free, refused
}

// want returns how many requests to reserve: as many as are used in paceFor at the pace since
// the last write, but at most four times as many as were used since then.
func (b *sharedBudget) want(now time.Time) int {
	if len(b.used) == 0 {
		return 1
	}
	pace := float64(paceFor) / float64(max(now.Sub(b.since), time.Millisecond))
	return int(math.Ceil(float64(len(b.used)) * min(max(pace, 1), 4)))
}

// write writes the ledger's record as change leaves it, if change returns true. It repeats
// both where another process has written the ledger meanwhile.
func (b *sharedBudget) write(ctx context.Context, change func(*record) bool) error {
	for {
		err := b.try(ctx, change)
		if ctx.Err() != nil || !errors.Is(err, load.ErrConflict) {
			return err
		}
		if err := load.Pause(ctx, rand.N(maxJitter)); err != nil {
			return err
		}
	}
}

// maxJitter bounds the random pause before a write of the ledger is repeated, because another
// process has written it meanwhile.
const maxJitter = 50 * time.Millisecond

// try reads and writes the ledger once. If the ledger does not hold this process's last
// reservation, the requests used of it are booked already: by a write whose answer was lost,
// or by other processes once the reservation had ended.
func (b *sharedBudget) try(ctx context.Context, change func(*record) bool) error {
	r, version, err := b.ledger.read(ctx)
	if err != nil {
		return err
	}
	if b.signed != r.Lent[b.id].Until {
		b.used = nil
	}
	if !change(&r) {
		return nil
	}
	if err := b.ledger.write(ctx, r, version); err != nil {
		return err
	}
	b.signed = r.Lent[b.id].Until
	return nil
}

// Close books the requests that were used, and gives back those that are still reserved. If
// the ledger cannot be written, the reservation ends by itself.
func (b *sharedBudget) Close() {
	b.mutex <- struct{}{}
	defer func() { <-b.mutex }()
	if b.left == 0 && len(b.used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = b.write(ctx, func(r *record) bool {
		now := b.now()
		r.bookUsed(now, b.id, b.used)
		r.trim(now, b.limits)
		return true
	})
	b.left, b.used = 0, nil
}

// closing is how long sharedBudget.Close may take at most.
const closing = 2 * time.Second

// tell calls waits if requests wait for long from now on, unless it was called for that moment
// already.
func (b *sharedBudget) tell(now, until time.Time) {
	if b.waits != nil && until.Sub(now) >= longWait && until.Sub(b.told) >= longWait {
		b.told = until
		b.waits(b.limits.perMinute, b.local(until))
	}
}
