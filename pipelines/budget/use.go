package budget

import (
	"context"
	"time"

	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// Use says how much of a budget is booked. All definitions of one account with one state
// share the bookings.
type Use struct {
	PerMinute, PerDay int // the definition's limits; 0 means no budget
	Minute, Day       int // requests booked or reserved in the last minute and last 24 hours; 0 without a budget
	// Next is the earliest time for the next request: now or later.
	Next time.Time
}

// Read returns how much of the budget of a definition's account is booked, by the
// clock of this machine. It changes nothing.
func Read(ctx context.Context, def *definition.Definition, state checkpoint.State, now time.Time) (Use, error) {
	l := limitsOf(def, state)
	u := Use{PerMinute: l.perMinute, PerDay: l.perDay, Next: now}
	if l.perMinute <= 0 && l.perDay <= 0 {
		return u, nil
	}
	r, _, err := ledgerOf(def, state).read(ctx)
	if err != nil {
		return u, err
	}
	r.settle(now, "", nil)
	lent, _ := r.lent()
	for _, span := range []struct {
		limit  int
		length time.Duration
		used   *int
	}{{l.perMinute, l.minute, &u.Minute}, {l.perDay, day, &u.Day}} {
		if span.limit <= 0 {
			continue
		}
		left, until := r.room(now, span.limit, span.length, lent)
		*span.used = span.limit - left
		if wait := until.Sub(now); left <= 0 && now.Add(wait).After(u.Next) {
			u.Next = now.Add(wait)
		}
	}
	return u, nil
}
