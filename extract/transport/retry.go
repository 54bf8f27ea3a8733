package transport

import (
	"context"
	"errors"
	"time"
)

const (
	patience = 2 * time.Minute // the default of Config.Patience
	// doubtfulTries bounds the attempts after answers that are most likely final:
	// a doubtful refusal, the same wrong answer again, and the same page while the
	// service has answered nothing.
	doubtfulTries = 3
)

// effort is what one request has taken so far.
type effort struct {
	form       string
	repeatable bool          // asking twice does no harm
	attempts   int           // attempts that were sent
	doubtful   int           // attempts with a doubtful refusal
	spent      time.Duration // time in attempts and pauses
	last       error

	unread int    // attempts whose answer could not be read
	sum    uint64 // hash of the first of these answers
	varies bool   // another of these answers differed from the first
}

// unreadable takes in an answer that cannot be read.
func (e *effort) unreadable(a *AnswerError) {
	if e.unread++; e.unread == 1 {
		e.sum = a.sum
	}
	e.varies = e.varies || a.sum != e.sum
	a.varies = e.varies
}

// samePage tells whether every attempt brought the same page that is not the service's.
func (e *effort) samePage() bool {
	a, ok := errors.AsType[*AnswerError](e.last)
	return ok && a.isPage() && !e.varies && e.unread == e.attempts
}

// mayHelp tells whether one more attempt may bring what the last one did not.
// met tells that the service has answered something in this run.
func (e *effort) mayHelp(met bool) bool {
	if is[*BudgetError](e.last) || is[*OutageError](e.last) {
		return false // the budget refills in hours; the outage was waited for already
	}
	class, _ := classOf(e.last)
	if !e.repeatable {
		// The request may have been carried out. A second copy is worse than an error.
		return class == ClassBusy
	}
	if a, ok := errors.AsType[*AnswerError](e.last); ok {
		// An empty answer, a cut one and a proxy's page are tried as often as a
		// failure of the network.
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

// wait waits so long, or until changed is closed. Its error is the cause of ctx.
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
