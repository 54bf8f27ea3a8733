package worker

import (
	"maps"
	"slices"
	"time"

	"github.com/formetl/formetl/extract/transport"
)

// Limits are what a definition allows for its account.
type Limits struct {
	Concurrency int           `json:"concurrency"`
	PerMinute   int           `json:"per_minute,omitempty"` // 0: no budget
	PerDay      int           `json:"per_day,omitempty"`    // 0: no budget
	Timeout     time.Duration `json:"timeout"`              // of one request
}

// Ask is a worker's question for its share of an account's requests.
type Ask struct {
	Worker string `json:"worker"`
	Limits Limits `json:"limits"`
	Want   int    `json:"want"` // requests that are under way or wait; 0 gives everything back
	Busy   int    `json:"busy"` // requests that are under way
	Grant  int    `json:"grant"`
	Unused int    `json:"unused,omitempty"` // bookings of that grant that were not used
}

// Share is what a worker may do for a while.
type Share struct {
	Grant  int `json:"grant"` // its number
	Slots  int `json:"slots"` // most requests under way
	Booked int `json:"booked,omitempty"`
	// Again is when more may be booked; 0 if that is not known.
	Again time.Duration `json:"again,omitempty"`
	// Until is when the budget of the day has room again; zero if it has.
	Until time.Time `json:"until,omitzero"`
}

const (
	// shareValid is how long after its question a worker may begin requests.
	shareValid = 10 * time.Second
	// shareMargin is for clocks that run at different speeds and for answers on their way.
	shareMargin = 5 * time.Second
	// turn is how long a worker has slots if there are more workers than slots.
	turn = 15 * time.Second
	day  = 24 * time.Hour
)

// ledger shares an account's requests among workers. All times are those of Temporal's
// server. The zero value has lent nothing.
//
// A worker that does not ask again has lost its share. It begins no request after
// shareValid, and its last one has ended a Timeout later. Only then is its share lent to
// others, so that no clock and no pause of a worker lets requests exceed a limit.
//
// Bookings are lent in the same way. One that was perhaps used counts from the moment when
// it can no longer be used.
type ledger struct {
	Holders map[string]*holding `json:"holders,omitempty"`
	Booked  []booking           `json:"booked,omitempty"` // oldest first
	Grants  int                 `json:"grants,omitempty"`
	// DayUntil is until when some definition needs the bookings of a whole day.
	DayUntil time.Time `json:"day_until,omitzero"`
}

// holding is the share of a worker.
type holding struct {
	Grant   int       `json:"grant"`
	Want    int       `json:"want"`
	Slots   int       `json:"slots"` // reserved for it; more than it may use while it gives some back
	Booked  int       `json:"booked,omitempty"`
	Has     bool      `json:"has"`   // it may begin requests; else it waits for its turn
	Since   time.Time `json:"since"` // since when
	Expires time.Time `json:"expires"`
}

// booking are requests that were sent at a time or before.
type booking struct {
	At time.Time `json:"at"`
	N  int       `json:"n"`
}

// share answers a worker's question.
func (l *ledger) share(now time.Time, a Ask) Share {
	l.expire(now)
	l.settle(now, a)
	if a.Want == 0 && a.Busy == 0 {
		delete(l.Holders, a.Worker)
		return Share{}
	}
	h := l.Holders[a.Worker]
	if h == nil {
		if h = (&holding{}); l.Holders == nil {
			l.Holders = map[string]*holding{}
		}
		l.Holders[a.Worker] = h
	}
	l.Grants++
	h.Want, h.Grant, h.Expires = a.Want, l.Grants, now.Add(shareValid+a.Limits.Timeout+shareMargin)
	s := Share{Grant: h.Grant, Slots: l.slots(now, a, h)}
	if h.Since.IsZero() || (s.Slots > 0) != h.Has {
		h.Since, h.Has = now, s.Slots > 0
	}
	h.Slots = max(s.Slots, a.Busy)
	if s.Slots > 0 {
		l.book(now, a, h, &s)
	}
	return s
}

// expire takes back the shares of workers that have not asked again.
func (l *ledger) expire(now time.Time) {
	for _, worker := range slices.Sorted(maps.Keys(l.Holders)) {
		if h := l.Holders[worker]; !now.Before(h.Expires) {
			l.use(h.Expires, h.Booked)
			delete(l.Holders, worker)
		}
	}
	keep := now.Add(-transport.BudgetMinute)
	if now.Before(l.DayUntil) {
		keep = now.Add(-day)
	}
	l.Booked = slices.DeleteFunc(l.Booked, func(b booking) bool { return !b.At.After(keep) })
}

// settle counts the bookings that a worker has used since its last question. If its
// answer was lost, it may have used all of them.
func (l *ledger) settle(now time.Time, a Ask) {
	h := l.Holders[a.Worker]
	if h == nil {
		return
	}
	used := h.Booked
	if a.Grant == h.Grant {
		used -= min(used, max(0, a.Unused))
	}
	l.use(now, used)
	h.Booked = 0
}

// use counts n requests at a time.
func (l *ledger) use(at time.Time, n int) {
	if n == 0 {
		return
	}
	if last := len(l.Booked) - 1; last >= 0 && at.Sub(l.Booked[last].At).Abs() < time.Second {
		l.Booked[last].N += n
		if at.After(l.Booked[last].At) {
			l.Booked[last].At = at
		}
		return
	}
	l.Booked = append(l.Booked, booking{at, n})
	slices.SortStableFunc(l.Booked, func(a, b booking) int { return a.At.Compare(b.At) })
}

// slots returns how many requests a worker may have under way. All get about as many. A
// worker that has too many keeps them until it asks again.
func (l *ledger) slots(now time.Time, a Ask, own *holding) int {
	free, asking, waiting, before := a.Limits.Concurrency, 0, 0, 0
	for _, h := range l.Holders {
		if h.Want > 0 {
			asking++
		}
		if h != own {
			free -= h.Slots
		}
		if h != own && h.Want > 0 && !h.Has {
			if waiting++; own.Since.IsZero() || h.Since.Before(own.Since) {
				before++
			}
		}
	}
	fair := max(1, a.Limits.Concurrency/max(1, asking))
	short := 0 // slots that others lack
	for _, h := range l.Holders {
		if h != own {
			short += max(0, min(h.Want, fair)-h.Slots)
		}
	}
	if asking > a.Limits.Concurrency {
		if own.Has && waiting > 0 && now.Sub(own.Since) >= turn {
			return 0 // it is another one's turn
		}
		if !own.Has {
			free -= before
		}
	}
	return max(0, min(a.Want, free, max(fair, free-short)))
}

// book lends bookings to a worker, in equal parts to all that want some.
func (l *ledger) book(now time.Time, a Ask, own *holding, s *Share) {
	if a.Limits.PerMinute <= 0 && a.Limits.PerDay <= 0 {
		return
	}
	lent, asking := 0, 0
	for _, h := range l.Holders {
		if lent += h.Booked; h.Slots > 0 {
			asking++
		}
	}
	free := -1
	if a.Limits.PerMinute > 0 {
		free = a.Limits.PerMinute - lent - l.used(now.Add(-transport.BudgetMinute))
		s.Again = l.again(now, transport.BudgetMinute)
	}
	if a.Limits.PerDay > 0 {
		l.DayUntil = now.Add(day)
		left := a.Limits.PerDay - lent - l.used(now.Add(-day))
		if left <= 0 && lent == 0 {
			s.Until = now.Add(l.again(now, day))
		}
		if free < 0 || left < free {
			free = left
		}
	}
	free = max(0, free)
	own.Booked = (free + asking - 1) / max(1, asking)
	s.Booked = own.Booked
}

// used returns how many requests count after a time.
func (l *ledger) used(after time.Time) (n int) {
	for _, b := range l.Booked {
		if b.At.After(after) {
			n += b.N
		}
	}
	return n
}

// again returns when the oldest booking of a span no longer counts.
func (l *ledger) again(now time.Time, span time.Duration) time.Duration {
	for _, b := range l.Booked {
		if at := b.At.Add(span); at.After(now) {
			return at.Sub(now)
		}
	}
	return 0
}

// idle tells whether the ledger may be forgotten.
func (l *ledger) idle(now time.Time) bool {
	l.expire(now)
	return len(l.Holders) == 0 && len(l.Booked) == 0
}
