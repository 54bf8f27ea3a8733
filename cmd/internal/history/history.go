// Package history remembers every state that the results of a form had, and
// when. Tests compare it with what formetl wrote while results changed. It
// imports nothing of formetl. Begin reading at History.
package history

import (
	"slices"
	"time"
)

// Moment is a number that grows with each change of any result of a service.
type Moment int

// Now is the end of a state that still holds.
const Now Moment = -1

// State is what a result was from one moment up to another.
type State[T any] struct {
	From, To Moment
	Date     time.Time // wall clock, what the service filters by; zero: none
	Is       T
}

// During tells whether the state held at any moment from a to b.
func (s State[T]) During(a, b Moment) bool { return s.From <= b && (s.To == Now || s.To > a) }

// History is every state that a result had, in order. There is a gap where it
// did not exist.
type History[T any] []State[T]

// Current is the state that still holds; ok is false for a result that is gone.
func (h History[T]) Current() (s State[T], ok bool) {
	if len(h) == 0 || h[len(h)-1].To != Now {
		return s, false
	}
	return h[len(h)-1], true
}

// Begin adds a state that holds from a moment on.
func (h History[T]) Begin(at Moment, date time.Time, is T) History[T] {
	return append(h, State[T]{From: at, To: Now, Date: date, Is: is})
}

// End ends the current state, if there is one.
func (h History[T]) End(at Moment) {
	if _, ok := h.Current(); ok {
		h[len(h)-1].To = at
	}
}

// Throughout tells whether the result existed and was as wanted at every moment
// from since up to now.
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
