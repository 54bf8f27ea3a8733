package transport

import (
	"context"
	"slices"
	"sync"
	"time"
)

// RollingBudget allows so many requests in any minute and in any 24 hours. A
// used-up minute makes requests wait; a used-up day ends them with a
// *BudgetError, since nobody waits for hours. Requests are booked before they
// are sent, in a ledger where processes share the budget.
//
// Processes can only share the machine's clock, which may be wrong and jump.
// Set back, it makes what was booked count for longer than its time, never
// shorter. Set forward, it gives back as much of the budget as it jumped over.
type RollingBudget struct {
	mu          sync.Mutex
	now         func() time.Time
	ledger      Ledger // nil: memory only
	minute, day spent
}

// Ledger keeps when requests were booked, for all who share a budget.
type Ledger interface {
	// Update gives change the booked times, oldest first, and keeps what it
	// returns, those of the last 24 hours, or what of them somebody still needs.
	// Nobody else reads or writes the ledger meanwhile.
	Update(ctx context.Context, change func(booked []time.Time) []time.Time) error
}

// BudgetMinute is how long a booking counts for the budget per minute. Requests
// reach the service some time after they were booked, one sooner than another,
// and it counts by its own clock: a second lies between.
const BudgetMinute = time.Minute + time.Second

// NewRollingBudget returns a budget; 0 is no limit. With a nil ledger it is
// the process's own.
func NewRollingBudget(perMinute, perDay int, ledger Ledger) *RollingBudget {
	return &RollingBudget{
		now:    time.Now,
		ledger: ledger,
		minute: spent{limit: perMinute, per: BudgetMinute},
		day:    spent{limit: perDay, per: 24 * time.Hour},
	}
}

// WithClock takes the time from now instead of time.Now, and returns b. It is
// called before the first Reserve.
func (b *RollingBudget) WithClock(now func() time.Time) *RollingBudget {
	b.now = now
	return b
}

// Reserve books a request, waiting for the minute's budget where it has to.
func (b *RollingBudget) Reserve(ctx context.Context) error {
	var waited time.Time // what the clock says at least, having waited
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := b.now()
		if now.Before(waited) { // it was set back or stands still: nobody waits for ever
			now = waited
		}
		wait, err := b.reserve(ctx, now)
		if err != nil || wait <= 0 {
			return err
		}
		waited = now.Add(wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// reserve books a request now, or tells how long to wait for the minute.
func (b *RollingBudget) reserve(ctx context.Context, now time.Time) (wait time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ledger == nil || b.minute.limit <= 0 && b.day.limit <= 0 {
		countFromNow(b.day.times, now)
		countFromNow(b.minute.times, now)
		return b.tryReserve(now)
	}
	kept := b.ledger.Update(ctx, func(booked []time.Time) []time.Time {
		countFromNow(booked, now)
		for len(booked) > 0 && !booked[0].Add(b.day.per).After(now) {
			booked = booked[1:]
		}
		// What tryReserve books stays apart: the ledger keeps what others need too.
		b.day.times = slices.Clone(booked)
		b.minute.times = slices.Clone(booked[max(0, len(booked)-max(1, b.minute.limit)):])
		if wait, err = b.tryReserve(now); err == nil && wait <= 0 {
			booked = append(booked, now)
		}
		return booked
	})
	if kept != nil {
		return 0, kept
	}
	return wait, err
}

// countFromNow moves bookings of the future to now: the clock was set back.
// Nobody waits longer for them than their budget's own time.
func countFromNow(booked []time.Time, now time.Time) {
	for i, t := range booked {
		if t.After(now) {
			booked[i] = now
		}
	}
}

func (b *RollingBudget) tryReserve(now time.Time) (time.Duration, error) {
	if until := b.day.freeAt(now); until.After(now) {
		return 0, &BudgetError{Limit: b.day.limit, Per: 24 * time.Hour, Until: until}
	}
	if until := b.minute.freeAt(now); until.After(now) {
		return until.Sub(now), nil
	}
	b.day.book(now)
	b.minute.book(now)
	return 0, nil
}

// spent remembers when the last limit requests were booked.
type spent struct {
	limit int
	per   time.Duration
	times []time.Time // oldest first, at most limit
}

// freeAt returns when the next request may be booked, now or earlier if it may.
func (s *spent) freeAt(now time.Time) time.Time {
	for len(s.times) > 0 && !s.times[0].Add(s.per).After(now) {
		s.times = s.times[1:]
	}
	if s.limit <= 0 || len(s.times) < s.limit {
		return now
	}
	return s.times[len(s.times)-s.limit].Add(s.per)
}

func (s *spent) book(now time.Time) {
	if s.limit > 0 {
		s.times = append(s.times, now)
	}
}
