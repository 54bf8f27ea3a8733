package extract

import (
	"context"
	"sync"
	"time"
)

// RollingBudget allows so many requests in any minute and in any 24 hours. A
// used-up minute makes requests wait; a used-up day ends them with a
// *BudgetError, since nobody waits for hours. Requests are booked before they
// are sent, in a ledger where processes share the budget.
type RollingBudget struct {
	mu          sync.Mutex
	ledger      Ledger // nil: memory only
	minute, day spent
}

// Ledger keeps when requests were booked, for all who share a budget.
type Ledger interface {
	// Update gives change the booked times, oldest first, and keeps what it
	// returns. Nobody else reads or writes the ledger meanwhile.
	Update(ctx context.Context, change func(booked []time.Time) []time.Time) error
}

// NewRollingBudget returns a budget; 0 is no limit. With a nil ledger it is
// the process's own.
func NewRollingBudget(perMinute, perDay int, ledger Ledger) *RollingBudget {
	return &RollingBudget{
		ledger: ledger,
		minute: spent{limit: perMinute, per: time.Minute},
		day:    spent{limit: perDay, per: 24 * time.Hour},
	}
}

// Reserve books a request, waiting for the minute's budget where it has to.
func (b *RollingBudget) Reserve(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait, err := b.reserve(ctx, time.Now())
		if err != nil || wait <= 0 {
			return err
		}
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
		return b.tryReserve(now)
	}
	kept := b.ledger.Update(ctx, func(booked []time.Time) []time.Time {
		for i, t := range booked {
			if t.After(now) { // the clock was set back: what is booked counts from now
				booked[i] = now
			}
		}
		b.day.times, b.minute.times = booked, booked[max(0, len(booked)-max(1, b.minute.limit)):]
		wait, err = b.tryReserve(now)
		if b.day.limit > 0 {
			return b.day.times
		}
		return b.minute.times
	})
	if kept != nil {
		return 0, kept
	}
	return wait, err
}

func (b *RollingBudget) tryReserve(now time.Time) (time.Duration, error) {
	if until := b.day.freeAt(now); until.After(now) {
		return 0, &BudgetError{Limit: b.day.limit, Per: b.day.per, Until: until}
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
