package extract

import (
	"context"
	"sync"
	"time"
)

// RollingBudget allows so many requests in any minute and in any 24 hours. A
// used-up minute makes requests wait; a used-up day ends them with a
// *BudgetError, since nobody waits for hours. It lives in memory: each process
// counts its own.
type RollingBudget struct {
	mu          sync.Mutex
	minute, day spent
}

// NewRollingBudget returns a budget; 0 is no limit.
func NewRollingBudget(perMinute, perDay int) *RollingBudget {
	return &RollingBudget{
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
		wait, err := b.tryReserve(time.Now())
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

func (b *RollingBudget) tryReserve(now time.Time) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
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
	return s.times[0].Add(s.per)
}

func (s *spent) book(now time.Time) {
	if s.limit > 0 {
		s.times = append(s.times, now)
	}
}
