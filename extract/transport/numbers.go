package transport

import (
	"slices"
	"sync/atomic"
)

// Requests counts the attempts that a sender has made.
type Requests struct {
	Results int64 // pages of results, first attempts
	Count   int64 // counts, first attempts
	Other   int64 // the other transactions, first attempts
	Retries int64 // attempts after the first, of any transaction
	Bytes   int64 // of all answers, after decompression
}

var outcomes = [...]string{OutcomeOK, OutcomeBusy, OutcomeRefused, OutcomeFailed, OutcomeInvalid, OutcomeCancelled}

// numbers are those of a sender. What a fork counts is counted above it too.
type numbers struct {
	above *numbers

	first          [kinds]atomic.Int64
	retries, bytes atomic.Int64
	ended          [len(outcomes)]atomic.Int64
}

// Requests returns what the sender and its forks have sent so far.
func (s *Sender) Requests() Requests {
	n := s.numbers
	return Requests{
		Results: n.first[KindResults].Load(), Count: n.first[KindCount].Load(), Other: n.first[KindOther].Load(),
		Retries: n.retries.Load(), Bytes: n.bytes.Load(),
	}
}

// Outcomes returns how many attempts of the sender and its forks had each outcome,
// from OutcomeOK to OutcomeCancelled. They add up to the attempts of Requests,
// but for those that are still under way.
func (s *Sender) Outcomes() map[string]int64 {
	all := map[string]int64{}
	for i, outcome := range outcomes {
		all[outcome] = s.numbers.ended[i].Load()
	}
	return all
}

// sent counts an attempt that goes out now.
func (n *numbers) sent(kind Kind, attempt int) {
	for ; n != nil; n = n.above {
		if attempt > 1 {
			n.retries.Add(1)
		} else {
			n.first[kind].Add(1)
		}
	}
}

// came counts what became of an attempt.
func (n *numbers) came(outcome string, bytes int) {
	for ; n != nil; n = n.above {
		n.ended[slices.Index(outcomes[:], outcome)].Add(1)
		n.bytes.Add(int64(bytes))
	}
}
