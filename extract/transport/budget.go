package transport

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// RollingBudget allows so many requests in any minute and in any 24 hours. A
// used-up minute makes requests wait; a used-up day ends them with a
// *BudgetError. Requests are booked before they are sent, in a ledger that
// processes share.
//
// The clock of the machine, which they share, may jump. Set back, it makes
// bookings count for longer, never shorter. Set forward, it gives back as much of
// the budget as it jumped over.
type RollingBudget struct {
	mu                sync.Mutex
	perMinute, perDay int
	ledger            Ledger
	now               func() time.Time
}

// Ledger keeps when requests were booked, for all who share a budget.
type Ledger interface {
	// Update gives change the booked times, oldest first, and keeps what it
	// returns: those of the last 24 hours, or what of them somebody still needs.
	// Nobody else reads or writes the ledger meanwhile.
	Update(ctx context.Context, change func(booked []time.Time) []time.Time) error
}

// BudgetMinute is how long a booking counts for the budget per minute. Requests
// reach the service at different times after their bookings, so a second is added.
const BudgetMinute = time.Minute + time.Second

const budgetDay = 24 * time.Hour

// NewRollingBudget returns a budget; 0 is no limit. now is the clock of the
// bookings.
func NewRollingBudget(perMinute, perDay int, ledger Ledger, now func() time.Time) *RollingBudget {
	return &RollingBudget{perMinute: perMinute, perDay: perDay, ledger: ledger, now: now}
}

// Reserve books a request, waiting for the minute's budget where it has to.
func (b *RollingBudget) Reserve(ctx context.Context) error {
	var waited time.Time // until when the request has waited
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := b.now()
		if now.Before(waited) { // the clock was set back or stands still, and nobody may wait for ever
			now = waited
		}
		until, err := b.reserve(ctx, now)
		if err != nil || !until.After(now) {
			return err
		}
		waited = until
		if err := wait(ctx, until.Sub(now), nil); err != nil {
			return err
		}
	}
}

// reserve books a request, unless the budget of the minute is used up until
// later than now.
func (b *RollingBudget) reserve(ctx context.Context, now time.Time) (until time.Time, err error) {
	if b.perMinute <= 0 && b.perDay <= 0 {
		return now, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ledgerErr := b.ledger.Update(ctx, func(booked []time.Time) []time.Time {
		for i, t := range booked {
			if t.After(now) { // the clock was set back, and nobody may wait for longer than the span
				booked[i] = now
			}
		}
		if day := freeAt(booked, b.perDay, budgetDay); day.After(now) {
			err = &BudgetError{Limit: b.perDay, Per: budgetDay, Until: day}
			return booked
		}
		if until = freeAt(booked, b.perMinute, BudgetMinute); until.After(now) {
			return booked
		}
		return append(booked, now)
	})
	return until, cmp.Or(ledgerErr, err)
}

// freeAt returns when a budget of limit requests in any span has room for one
// more; the zero time where it always had. booked is ordered, oldest first.
func freeAt(booked []time.Time, limit int, span time.Duration) time.Time {
	if limit <= 0 || len(booked) < limit {
		return time.Time{}
	}
	return booked[len(booked)-limit].Add(span)
}
