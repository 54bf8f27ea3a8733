package model

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// Moment is a number that grows with each change of any result of a service.
type Moment int

// Now is the end of a state that still holds.
const Now Moment = -1

// State is what a result was from one moment up to another.
type State struct {
	From, To Moment
	Date     time.Time // wall clock, what the service filters by; zero: none
	Is       formservice.Result
}

// During tells whether the state held at any moment from a to b.
func (s State) During(a, b Moment) bool { return s.From <= b && (s.To == Now || s.To > a) }

// History is every state that a result had, in order. There is a gap where it
// did not exist.
type History []State

// Current is the state that still holds; ok is false for a result that is gone.
func (h History) Current() (s State, ok bool) {
	if len(h) == 0 || h[len(h)-1].To != Now {
		return s, false
	}
	return h[len(h)-1], true
}

// Begin adds a state that holds from a moment on.
func (h History) Begin(at Moment, date time.Time, is formservice.Result) History {
	return append(h, State{From: at, To: Now, Date: date, Is: is})
}

// End ends the current state, if there is one.
func (h History) End(at Moment) {
	if _, ok := h.Current(); ok {
		h[len(h)-1].To = at
	}
}

// Throughout tells whether the result existed and was as wanted at every moment
// from since up to now.
func (h History) Throughout(since Moment, wanted func(State) bool) bool {
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
