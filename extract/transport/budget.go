package transport

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// RollingBudget bounds the requests in any minute and in any 24 hours. If the
// minute's budget is used up, requests wait. If the day's budget is used up,
// they fail with a *BudgetError. Requests are booked before they are sent, in a
// ledger that processes share.
//
// The processes also share the clock of the machine, which may jump. If it is
// set back, bookings count for longer, never shorter. If it is set forward, as
// much of the budget is free again as the clock jumped over.
type RollingBudget struct {
	mu                sync.Mutex
	perMinute, perDay int
	ledger            Ledger
	now               func() time.Time

	// Waits, where it is set, is called when requests begin to wait for long: once for all
	// that wait for the same moment. It is set before the first request.
	Waits func(perMinute int, until time.Time)
	told  time.Time // the last moment that Waits was called with
}

// longWait is the least wait that RollingBudget.Waits tells of. Shorter ones come with
// almost every request of a budget that is used evenly.
const longWait = 5 * time.Second

// Ledger stores the times of bookings for all processes that share a budget.
type Ledger interface {
	// Update calls change with the booked times, oldest first, and stores the
	// times that it returns. It may drop times older than 24 hours, and times
	// that nobody needs. No other process reads or writes the ledger meanwhile.
	Update(ctx context.Context, change func(booked []time.Time) []time.Time) error
}

// BudgetMinute is how long a booking counts for the budget per minute. It adds a
// second, because requests reach the service with varying delays after their bookings.
const BudgetMinute = time.Minute + time.Second

const budgetDay = 24 * time.Hour

// NewRollingBudget returns a budget of perMinute and perDay requests; 0 means
// no limit. now returns the current time, by which requests are booked.
func NewRollingBudget(perMinute, perDay int, ledger Ledger, now func() time.Time) *RollingBudget {
	return &RollingBudget{perMinute: perMinute, perDay: perDay, ledger: ledger, now: now}
}

// Reserve books a request. It waits while the budget of the minute is used up.
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
		b.tell(now, until)
		if err := wait(ctx, until.Sub(now), nil); err != nil {
			return err
		}
	}
}

// tell tells of a long wait from now on, unless that was told already.
func (b *RollingBudget) tell(now, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Waits != nil && until.Sub(now) >= longWait && until.Sub(b.told) >= longWait {
		b.told = until
		b.Waits(b.perMinute, until)
	}
}

// reserve books a request at now. If the minute's budget is used up, it books
// nothing and returns until when to wait. Else until is not later than now.
func (b *RollingBudget) reserve(ctx context.Context, now time.Time) (until time.Time, err error) {
	if b.perMinute <= 0 && b.perDay <= 0 {
		return now, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ledgerErr := b.ledger.Update(ctx, func(booked []time.Time) []time.Time {
		for i, t := range booked {
			if t.After(now) { // the clock was set back: count as booked now
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

// freeAt returns when a budget of limit requests per span has room for one more request.
// It is the zero time if fewer than limit are booked. booked is in order, oldest first.
func freeAt(booked []time.Time, limit int, span time.Duration) time.Time {
	if limit <= 0 || len(booked) < limit {
		return time.Time{}
	}
	return booked[len(booked)-limit].Add(span)
}
