// Package history remembers every state that the results of a form had, and
// when. Tests compare with it what formetl wrote while results changed. It
// holds what tests of several packages need, and nothing of formetl.
package history

import (
	"slices"
	"time"
)

// Moment counts the changes of all results of a service: what was so at one is
// told from what was so at the next.
type Moment int

// Now is the end of what is still so.
const Now Moment = -1

// State is what a result was from one moment up to another.
type State[T any] struct {
	From, To Moment
	Date     time.Time // wall clock, what the service filters by; zero: none
	Is       T
}

// During tells whether the result was so at any moment from a to b.
func (s State[T]) During(a, b Moment) bool { return s.From <= b && (s.To == Now || s.To > a) }

// History is every state that a result had, in order. There is a gap where it
// did not exist.
type History[T any] []State[T]

// Current is the state that is still so, ok false for a result that is gone.
func (h History[T]) Current() (s State[T], ok bool) {
	if len(h) == 0 || h[len(h)-1].To != Now {
		return s, false
	}
	return h[len(h)-1], true
}

// Begin adds a state that is so from a moment on.
func (h History[T]) Begin(at Moment, date time.Time, is T) History[T] {
	return append(h, State[T]{From: at, To: Now, Date: date, Is: is})
}

// End ends the current state, if there is one.
func (h History[T]) End(at Moment) {
	if _, ok := h.Current(); ok {
		h[len(h)-1].To = at
	}
}

// Throughout tells whether the result was there, and as wanted, all the time
// since a moment up to now.
func (h History[T]) Throughout(since Moment, wanted func(State[T]) bool) bool {
	until := Now
	for _, s := range slices.Backward(h) {
		if s.To != until || !wanted(s) {
			return false
		}
		if until = s.From; until <= since {
			return true
		}
	}
	return false
}

// Between tells of a state whether it is dated in a half-open range.
func (s State[T]) Between(from, to time.Time) bool {
	return !s.Date.IsZero() && !s.Date.Before(from) && (to.IsZero() || s.Date.Before(to))
}
