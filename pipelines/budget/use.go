package budget

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

// Use says how much of a budget is booked. All definitions of one account with
// one state folder share the bookings.
type Use struct {
	PerMinute, PerDay int // the definition's limits; 0 means no budget
	Minute, Day       int // requests booked in the last minute and last 24 hours; 0 without a budget
	// Next is the earliest time for the next request: now or later.
	Next time.Time
}

// Read returns how much of the budget of a definition's account is booked. It
// needs no lock, because each booking replaces the ledger's file in one step.
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

// spend counts the bookings within the last span of a budget that allows limit
// requests per span. It moves b.Next to the time when the budget has room.
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
