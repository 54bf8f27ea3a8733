package pipelines

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract/transport"
)

// BudgetState is what is booked of the budgets that a definition shares with
// all others of its account and state folder.
type BudgetState struct {
	PerMinute, PerDay int // the definition's limits; 0: no budget
	Minute, Day       int // booked in the last minute, in the last 24 hours; 0 without a budget
	// Next is when the next request may be sent: now, or later.
	Next time.Time
}

// budgetState reads the ledger. Its file is replaced whole whenever something
// is booked, so no lock is taken and nobody waits for who only looks.
func budgetState(def *Definition, now time.Time) (BudgetState, error) {
	b := BudgetState{PerMinute: def.Source.Requests.PerMinute, PerDay: def.Source.Requests.PerDay, Next: now}
	if b.PerMinute <= 0 && b.PerDay <= 0 {
		return b, nil
	}
	l := ledgerOf(def)
	booked, err := l.read()
	if err != nil {
		return b, l.fail(err)
	}
	for i, t := range booked {
		if t.After(now) { // the clock was set back
			booked[i] = now
		}
	}
	b.Minute = b.spend(booked, b.PerMinute, transport.BudgetMinute, now)
	b.Day = b.spend(booked, b.PerDay, 24*time.Hour, now)
	return b, nil
}

// spend counts what is booked of one budget, and puts the next request off
// until there is room.
func (b *BudgetState) spend(booked []time.Time, limit int, per time.Duration, now time.Time) int {
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
