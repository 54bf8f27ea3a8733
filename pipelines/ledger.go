package pipelines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// ledger is the object of the state that holds the bookings of requests to an account, in all
// runs that share the state.
type ledger struct {
	state checkpoint.State
	name  string
}

func ledgerOf(def *definition.Definition, state checkpoint.State) ledger {
	account := sha256.Sum256([]byte(strings.TrimRight(def.Source.BaseURL, "/") + "\n" + def.Source.Account))
	return ledger{state: state, name: "requests-" + hex.EncodeToString(account[:8]) + ".json"}
}

// read reads the ledger's record, and the version of its object. A record that cannot be
// parsed counts as empty. Runs may then spend one budget too much, but they do not fail for
// good.
func (l ledger) read(ctx context.Context) (r record, version string, err error) {
	var data []byte
	err = l.state.Try(ctx, func() error {
		data, version, err = l.state.Get(ctx, l.name)
		return err
	})
	if errors.Is(err, load.ErrNotExist) {
		return record{}, load.NoVersion, nil
	}
	if err != nil {
		return record{}, "", err
	}
	if json.Unmarshal(data, &r) != nil {
		if r = (record{}); l.state.Log != nil {
			l.state.Log.LogAttrs(ctx, slog.LevelWarn, "the record of the requests sent in the last 24 hours is damaged and begins anew, so up to twice the budget may be sent in 24 hours", slog.String("path", l.state.PathOf(l.name)))
		}
	}
	return r, version, nil
}

// write replaces the ledger's record. If another process has written it since version was
// read, the error wraps load.ErrConflict.
func (l ledger) write(ctx context.Context, r record, version string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return l.state.Try(ctx, func() error { return l.state.Put(ctx, l.name, data, version) })
}

// record is what the ledger holds. Times are Unix milliseconds by the clock of the state.
type record struct {
	// Booked are the requests that count against a budget, oldest first. They reach back a
	// whole day only if a definition has a budget per day.
	Booked []booking `json:"booked"`
	// Lent are the requests that processes have reserved, by the id of their sharedBudget.
	Lent map[string]loan `json:"lent,omitempty"`
	// DayUntil is until when some definition needs the bookings of a day.
	DayUntil int64 `json:"day_until,omitempty"`

	moved bool // bookings of the future were moved, because the clock was set back
}

// booking is a time in Unix milliseconds, and how many requests were sent at that time.
type booking [2]int64

func (b booking) at() time.Time { return time.UnixMilli(b[0]) }

// loan is how many requests a process has reserved, and until when, in Unix milliseconds.
type loan struct {
	N     int   `json:"n"`
	Until int64 `json:"until"`
}

// book adds n requests to the bookings at a time.
func (r *record) book(at time.Time, n int) {
	if n == 0 {
		return
	}
	ms := at.UnixMilli()
	i, found := slices.BinarySearchFunc(r.Booked, ms, func(b booking, ms int64) int { return int(b[0] - ms) })
	if found {
		r.Booked[i][1] += int64(n)
		return
	}
	r.Booked = slices.Insert(r.Booked, i, booking{ms, int64(n)})
}

// bookUsed books the requests that a process has used, and ends its reservation. Requests that
// other processes had reserved and not booked in time count as used when their reservation
// ended.
func (r *record) bookUsed(now time.Time, id string, used []time.Time) {
	delete(r.Lent, id)
	for _, at := range used {
		r.book(at, 1)
	}
	for other, l := range r.Lent {
		// A reservation is over, or ends so late that it was made before a clock was set back.
		if until := time.UnixMilli(l.Until); !until.After(now) || until.After(now.Add(2*mostLent)) {
			r.book(until, l.N)
			delete(r.Lent, other)
		}
	}
	for i, b := range r.Booked {
		if b.at().After(now) { // the clock was set back: the booking counts as sent now
			r.Booked[i][0], r.moved = now.UnixMilli(), true
		}
	}
}

// lent returns how many requests are reserved, and by how many processes.
func (r *record) lent() (n, processes int) {
	for _, l := range r.Lent {
		if l.N > 0 {
			n, processes = n+l.N, processes+1
		}
	}
	return n, processes
}

// trim drops the bookings that no budget counts any more. Bookings that count only for the
// budget of a day are added up by the minute.
func (r *record) trim(now time.Time, l limits) {
	if l.perDay > 0 {
		r.DayUntil = now.Add(2 * day).UnixMilli() // a daily run may begin a little later
	}
	recent := now.Add(-l.minute)
	var booked []booking
	for _, b := range r.Booked {
		switch last := len(booked) - 1; {
		case b.at().After(recent):
			booked = append(booked, b)
		case now.UnixMilli() > r.DayUntil || !b.at().After(now.Add(-day)):
		case last >= 0 && b.at().Truncate(time.Minute).Equal(booked[last].at().Truncate(time.Minute)):
			booked[last] = booking{b[0], booked[last][1] + b[1]}
		default:
			booked = append(booked, b)
		}
	}
	r.Booked = booked
}

// lend returns how many requests, up to want, a process may reserve. If no request is free, it
// returns when to ask again. If those of the day are used up, the error is a
// *transport.BudgetError.
func (r *record) lend(now time.Time, want int, l limits) (n int, free time.Time, err error) {
	lent, others := r.lent()
	room, free := want, now
	for _, span := range []struct {
		limit  int
		length time.Duration
	}{{l.perDay, day}, {l.perMinute, l.minute}} {
		if span.limit <= 0 {
			continue
		}
		left, until := r.room(now, span.limit, span.length, lent)
		if left > 0 {
			room = min(room, (left+others)/(others+1))
			continue
		}
		room, free = 0, until
		switch {
		case lent > 0: // reserved requests may be given back
			free = now.Add(again)
		case span.length == day:
			return 0, until, &transport.BudgetError{Limit: span.limit, Per: day, Until: until}
		}
	}
	return room, free, nil
}

// room returns how many requests a limit leaves free. If none is left, until is when some are
// free again: as many as are freed in paceFor, so that one write of the ledger reserves them.
func (r *record) room(now time.Time, limit int, length time.Duration, lent int) (left int, until time.Time) {
	left = limit - lent
	first := slices.IndexFunc(r.Booked, func(b booking) bool { return b.at().Add(length).After(now) })
	if first < 0 && left > 0 {
		return left, now
	}
	if first < 0 { // all requests of the limit are reserved
		return left, now.Add(again)
	}
	for _, b := range r.Booked[first:] {
		left -= int(b[1])
	}
	freed, some := left, max(1, limit*int(paceFor/time.Second)/int(length/time.Second))
	for _, b := range r.Booked[first:] {
		if freed += int(b[1]); freed >= some {
			return left, b.at().Add(length)
		}
	}
	return left, now.Add(again)
}

// Booked says how much of a budget of requests is booked. All definitions of one account with
// the same state share the bookings.
type Booked struct {
	PerMinute, PerDay int // the definition's limits; 0 means no budget
	Minute, Day       int // requests booked or reserved in the last minute and last 24 hours; 0 without a budget
	// Next is the earliest time for the next request: now or later.
	Next time.Time
}

// readBudget returns how much of the budget of a definition's account is booked, by the
// clock of this machine. It changes nothing.
func readBudget(ctx context.Context, def *definition.Definition, state checkpoint.State, now time.Time) (Booked, error) {
	l := limitsOf(def, state)
	u := Booked{PerMinute: l.perMinute, PerDay: l.perDay, Next: now}
	if l.perMinute <= 0 && l.perDay <= 0 {
		return u, nil
	}
	r, _, err := ledgerOf(def, state).read(ctx)
	if err != nil {
		return u, err
	}
	r.bookUsed(now, "", nil)
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
