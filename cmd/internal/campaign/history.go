package main

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// moment is a number that grows with each change of any result of a form.
type moment int

const (
	still moment = math.MaxInt // the end of a state that holds now
	never moment = -1          // before all moments
)

// state is what a result was from one moment up to another.
type state struct {
	from, to moment
	date     time.Time // wall clock, what the service filters by; zero: none
	is       formservice.Result
}

// history is every state that a result had, in order. There is a gap where it did not exist.
type history []state

// gone tells whether the result was deleted.
func (h history) gone() bool { return h[len(h)-1].to != still }

// between gives the states that held at any moment from a to b.
func (h history) between(a, b moment) (states []state) {
	for _, s := range h {
		if s.from <= b && s.to > a {
			states = append(states, s)
		}
	}
	return states
}

// throughout tells whether the result existed and was as wanted at every moment from since
// up to now.
func (h history) throughout(since moment, wanted func(state) bool) bool {
	until := still
	for _, s := range slices.Backward(h) {
		if s.to != until || !wanted(s) {
			return false
		}
		if until = s.from; until <= since {
			return true
		}
	}
	return false
}

// put stores a result, new or changed, and notes how the service answers it from now on.
func (p *people) put(r formservice.Result) {
	if p.form.Update(r) != nil {
		_, _ = p.form.Insert(r) // one of the two does
	}
	p.end(r.ID)
	r, _ = p.form.Get(r.ID) // with the time of its change
	p.results[r.ID] = append(p.results[r.ID], state{from: p.at, to: still, date: r.Date(), is: r})
}

// remove deletes a result, if it is there.
func (p *people) remove(id int64) {
	if p.form.Delete(id) {
		p.end(id)
	}
}

// end ends the state of a result that held so far, at a new moment.
func (p *people) end(id int64) {
	p.at++
	if h := p.results[id]; len(h) > 0 && !h.gone() {
		h[len(h)-1].to = p.at
	}
}

// ids are those of all results that are there now, ascending.
func (p *people) ids() (ids []int64) {
	for _, id := range slices.Sorted(maps.Keys(p.results)) {
		if !p.results[id].gone() {
			ids = append(ids, id)
		}
	}
	return ids
}
