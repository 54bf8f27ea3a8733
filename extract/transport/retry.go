package transport

import (
	"context"
	"errors"
	"net/http"
	"time"
)

const (
	// doubtfulTries bounds the attempts of a request whose failures are most likely final:
	// doubtful refusals, the same wrong answer, and redirects or the same foreign web page if
	// the service has answered nothing yet.
	doubtfulTries = 3
	// heavyTries bounds the attempts of a request whose answer is too heavy for the service, if the
	// caller can ask for less.
	heavyTries = 2
)

// effort records the attempts of one request so far.
type effort struct {
	form       string
	repeatable bool          // sending the request twice does no harm
	halved     bool          // see Call.Halved
	unsure     bool          // see Config.Unsure
	attempts   int           // attempts that were made
	unsent     int           // how many of the attempts found no connection
	doubtful   int           // attempts with a doubtful refusal
	heavy      int           // attempts that failed as heavy answers do
	spent      time.Duration // time in attempts and pauses
	last       error
	told       string // the last error that was logged, see errorOnce

	unread int    // attempts whose answer could not be read
	sum    uint64 // hash of the first unreadable answer
	varies bool   // another unreadable answer differed from the first
}

// unreadable records an answer that cannot be read.
func (e *effort) unreadable(a *AnswerError) {
	if e.unread++; e.unread == 1 {
		e.sum = a.sum
	}
	e.varies = e.varies || a.sum != e.sum
	a.varies = e.varies
}

// tooHeavy tells whether the caller should ask for fewer results rather than for the same again.
func (e *effort) tooHeavy() bool {
	if meaningOf(e.last).heavy {
		e.heavy++
	}
	return e.halved && e.heavy >= heavyTries
}

// samePage tells whether every attempt that had a connection got the same foreign
// answer, such as a web page. All redirects are the same.
func (e *effort) samePage() bool {
	a, ok := errors.AsType[*AnswerError](e.last)
	return ok && a.isPage() && !e.varies && e.unread == e.attempts-e.unsent
}

// mayHelp tells whether one more attempt of the request may succeed after the last one failed.
// met tells whether the service has answered something in this run.
func (e *effort) mayHelp(met bool) bool {
	if is[*BudgetError](e.last) || is[*OutageError](e.last) {
		return false // the budget refills in hours; the outage was waited for
	}
	class := meaningOf(e.last).class
	if !e.repeatable {
		// The request may have been carried out. Doing it twice is worse than an error.
		return class == ClassBusy
	}
	if a, ok := errors.AsType[*AnswerError](e.last); ok {
		// Empty answers, cut answers and web pages of a proxy get as many
		// attempts as failures of the network.
		if e.unsure && !met && a.isPage() && a.Status >= http.StatusBadRequest {
			return false
		}
		again := a.Temporary()
		if a.isPage() {
			again = met || !e.samePage()
		}
		return again || e.unread < doubtfulTries
	}
	if class == ClassDoubtful {
		e.doubtful++
		return e.doubtful < doubtfulTries
	}
	return Temporary(e.last)
}

// wait waits for the duration pause, or until changed is closed. If ctx ends first, wait returns
// the cause of ctx.
func wait(ctx context.Context, pause time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
