package transport

import (
	"errors"
	"net/http"
	"time"
)

// Class tells what an error of the service means for another attempt of the request.
type Class uint8

// The classes of an error.
const (
	ClassFinal       Class = iota // refused for good: there is no further attempt
	ClassDoubtful                 // most likely refused for good: tried a few times, see doubtfulTries
	ClassUnavailable              // too busy: tried again, though the request may have been carried out
	ClassBusy                     // too busy: tried again, because the service turned the request away
)

// The outcomes of an attempt. Every attempt that was sent has exactly one outcome. A
// refusal that blames the request is never OutcomeBusy, whatever its HTTP status.
const (
	OutcomeOK        = "ok"        // the answer that was asked for
	OutcomeBusy      = "busy"      // a refusal that calls the service busy, or HTTP status 429 or 503
	OutcomeRefused   = "refused"   // another refusal, a redirect, or HTTP status 4xx without a refusal
	OutcomeFailed    = "failed"    // no whole answer came, or HTTP status 5xx without a refusal
	OutcomeInvalid   = "invalid"   // an answer with another status that cannot be read
	OutcomeCancelled = "cancelled" // the caller stopped waiting for the answer
)

// is tells whether err is an E or wraps one.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// meaning is what the error of an attempt, or of a whole request, tells about the service.
type meaning struct {
	class   Class
	after   time.Duration // the pause that the server asks for
	outcome string

	answered bool // the service itself answered, even if only to say that it is busy
	own      bool // the answer is from the service, damaged or not
	absent   bool // the service is away: no connection, no whole answer, or HTTP status 5xx without Retry-After
	// foreign is set for a redirect, a web page or an empty answer. If the service has answered
	// before in this run, a foreign answer means that the service is away. Otherwise the base URL
	// may be wrong, and waiting would not help.
	foreign bool
	heavy   bool // the answer may be more than the service can serve: HTTP status 504, cut, not in time
	unsent  bool // there was no connection
	done    bool // the request was sent and not refused, so it may have been carried out
}

// meaningOf tells what the error of an attempt or a request means; nil means success.
func meaningOf(err error) meaning {
	if err == nil {
		return meaning{outcome: OutcomeOK, answered: true, own: true}
	}
	if r, ok := errors.AsType[*ServiceError](err); ok {
		m := meaning{class: r.Class(), after: r.RetryAfter, outcome: OutcomeRefused, answered: true, own: true, heavy: r.Status == http.StatusGatewayTimeout}
		m.done = m.class == ClassUnavailable
		if m.class >= ClassUnavailable {
			m.outcome = OutcomeBusy
		}
		return m
	}
	if n, ok := errors.AsType[*NetworkError](err); ok {
		m := meaning{outcome: OutcomeFailed, absent: !n.Final, heavy: !n.Final && !n.Unreached(), unsent: n.unsent, done: !n.Final && !n.unsent}
		if n.doubtful {
			m.class = ClassDoubtful
		}
		return m
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		m := meaning{after: s.RetryAfter, outcome: OutcomeFailed, absent: s.Status >= http.StatusInternalServerError && s.RetryAfter == 0, heavy: s.Status == http.StatusGatewayTimeout}
		m.answered, m.done = !m.absent, s.Status != http.StatusTooManyRequests
		switch s.Status {
		case http.StatusTooManyRequests:
			m.class, m.outcome = ClassBusy, OutcomeBusy
		case http.StatusServiceUnavailable: // a proxy sends 503 too, so the request may be done
			m.class, m.outcome = ClassUnavailable, OutcomeBusy
		}
		return m
	}
	if a, ok := errors.AsType[*AnswerError](err); ok {
		m := meaning{outcome: OutcomeInvalid, own: a.Ours, foreign: a.isPage() || a.Fault == FaultEmpty, heavy: a.Fault == FaultCut, done: !a.NotService() && !a.redirects()}
		if a.Status >= http.StatusMultipleChoices && a.Status < http.StatusInternalServerError {
			m.outcome = OutcomeRefused
		}
		return m
	}
	return meaning{outcome: OutcomeFailed}
}

// isAbsence tells whether the service is away. met tells whether it has answered before.
func (m meaning) isAbsence(met bool) bool { return m.absent || m.foreign && met }

// TooHeavy tells whether a request failed as it does if its answer is more than the
// service can serve: no whole answer in time, or HTTP status 504.
func TooHeavy(err error) bool { return !is[*OutageError](err) && meaningOf(err).heavy }

// MayBeDone tells whether a request that failed may have been carried out.
func MayBeDone(err error) bool { return err != nil && meaningOf(err).done }
