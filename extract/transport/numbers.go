package transport

import (
	"slices"
	"sync/atomic"
)

// Requests counts the attempts of requests that a sender and its forks have made.
type Requests struct {
	Results int64 // first attempts to read a page of results
	Count   int64 // first attempts of counts
	Other   int64 // first attempts of other transactions
	Files   int64 // first attempts of uploaded files
	Retries int64 // attempts after the first, of any transaction
}

var outcomes = [...]string{OutcomeOK, OutcomeBusy, OutcomeRefused, OutcomeFailed, OutcomeInvalid, OutcomeCancelled}

// numbers holds the counters of a sender. A fork also counts into its parent's (above).
type numbers struct {
	above *numbers

	first   [kinds]atomic.Int64
	retries atomic.Int64
	ended   [len(outcomes)]atomic.Int64
}

// Requests returns the number of attempts that the sender and its forks have sent so far.
func (s *Sender) Requests() Requests {
	n := s.numbers
	return Requests{
		Results: n.first[KindResults].Load(), Count: n.first[KindCount].Load(), Other: n.first[KindOther].Load(),
		Files: n.first[KindFile].Load(), Retries: n.retries.Load(),
	}
}

// Outcomes returns how many attempts of the sender and its forks had each
// outcome, from OutcomeOK to OutcomeCancelled. Their sum is the number of
// attempts in Requests, without those that are still under way.
func (s *Sender) Outcomes() map[string]int64 {
	all := map[string]int64{}
	for i, outcome := range outcomes {
		all[outcome] = s.numbers.ended[i].Load()
	}
	return all
}

// sent counts an attempt when it is sent. attempt is its number within the request.
func (n *numbers) sent(kind Kind, attempt int) {
	for ; n != nil; n = n.above {
		if attempt > 1 {
			n.retries.Add(1)
		} else {
			n.first[kind].Add(1)
		}
	}
}

// came counts the outcome of an attempt.
func (n *numbers) came(outcome string) {
	for ; n != nil; n = n.above {
		n.ended[slices.Index(outcomes[:], outcome)].Add(1)
	}
}
