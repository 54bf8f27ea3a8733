package budget

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

// Use is how much of a budget is booked. All definitions of one account with one
// state folder share the bookings.
type Use struct {
	PerMinute, PerDay int // the definition's limits; 0: no budget
	Minute, Day       int // requests booked in the last minute, in the last 24 hours; 0 without a budget
	// Next is when the next request may be sent: now, or later.
	Next time.Time
}

// Read reads the ledger of a definition's account. The ledger's file is
// replaced in one step whenever something is booked, so no lock is needed.
func Read(def *definition.Definition, now time.Time) (Use, error) {
	b := Use{PerMinute: def.Source.Requests.PerMinute, PerDay: def.Source.Requests.PerDay, Next: now}
	if b.PerMinute <= 0 && b.PerDay <= 0 {
		return b, nil
	}
	l := ledgerOf(def)
	file, err := l.load()
	if err != nil {
		return b, l.fail(err)
	}
	booked := file.times()
	for i, t := range booked {
		if t.After(now) { // the clock was set back
			booked[i] = now
		}
	}
	b.Minute = b.spend(booked, b.PerMinute, transport.BudgetMinute, now)
	b.Day = b.spend(booked, b.PerDay, 24*time.Hour, now)
	return b, nil
}

// spend counts the live bookings of one budget, which allows limit requests per
// span. It moves b.Next to when the budget has room.
func (b *Use) spend(booked []time.Time, limit int, per time.Duration, now time.Time) int {
	if limit <= 0 {
		return 0
	}
	first := slices.IndexFunc(booked, func(t time.Time) bool { return t.Add(per).After(now) })
	if first < 0 {
		return 0
	}
	live := booked[first:]
	if len(live) >= limit {
		if free := live[len(live)-limit].Add(per); free.After(b.Next) {
			b.Next = free
		}
	}
	return len(live)
}
