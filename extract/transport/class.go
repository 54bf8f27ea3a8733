package transport

import (
	"errors"
	"net/http"
	"time"
)

// Refusal is an error with which the service itself answered. Each generation of
// the service has its own type of Refusal, which gives each error code a class.
type Refusal interface {
	error
	// Class tells what the refusal means for another attempt.
	Class() Class
	// ComeAfter returns the pause that the service asks for, 0 if it asks for none.
	ComeAfter() time.Duration
}

// Class is what a refusal means for another attempt.
type Class uint8

// The classes.
const (
	ClassFinal       Class = iota // the same request is refused again
	ClassDoubtful                 // most likely it is refused again
	ClassUnavailable              // too busy; the request may have been carried out
	ClassBusy                     // too busy; the request was turned away and had no effect
)

// The outcomes of an attempt. Every attempt that was sent has exactly one. A
// refusal that blames the request is never OutcomeBusy, whatever its HTTP status.
const (
	OutcomeOK        = "ok"        // the answer that was asked for
	OutcomeBusy      = "busy"      // a refusal that says so, or HTTP status 429 or 503
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

// classOf returns the class of an attempt's error, and the pause that the server asks for.
func classOf(err error) (class Class, after time.Duration) {
	if r, ok := errors.AsType[Refusal](err); ok {
		return r.Class(), r.ComeAfter()
	}
	if n, ok := errors.AsType[*NetworkError](err); ok && n.doubtful {
		return ClassDoubtful, 0
	}
	s, ok := errors.AsType[*StatusError](err)
	switch {
	case !ok:
		return ClassFinal, 0
	case s.Status == http.StatusTooManyRequests:
		return ClassBusy, s.RetryAfter
	case s.Status == http.StatusServiceUnavailable: // a proxy sends it too, so the request may be done
		return ClassUnavailable, s.RetryAfter
	}
	return ClassFinal, s.RetryAfter
}

// outcomeOf returns the outcome of an attempt that ended with err and was not
// cancelled. status is the HTTP status of the answer, 0 without an answer.
func outcomeOf(err error, status int) string {
	class, _ := classOf(err)
	switch {
	case err == nil:
		return OutcomeOK
	case class >= ClassUnavailable:
		return OutcomeBusy
	case is[Refusal](err), is[*RedirectError](err):
		return OutcomeRefused
	case !is[*AnswerError](err): // *NetworkError, *StatusError
		return OutcomeFailed
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return OutcomeRefused
	}
	return OutcomeInvalid
}

// isAnswer tells whether the service itself answered an attempt, even if only
// to say that it is busy. err is the error of the attempt.
func isAnswer(err error) bool {
	return err == nil || is[Refusal](err) || is[*StatusError](err) && !isAbsence(err, true)
}

// isOwn tells whether the answer to an attempt is from the service, damaged or not.
func isOwn(err error) bool {
	a, ok := errors.AsType[*AnswerError](err)
	return err == nil || is[Refusal](err) || ok && a.Ours
}

// isAbsence tells whether an attempt failed because the service is away: a
// network error, a timeout, or HTTP status 5xx without Retry-After. A redirect, a
// foreign web page or an empty answer counts too if met says that the service has
// answered before. Else the base URL may be wrong, and waiting would not help.
func isAbsence(err error, met bool) bool {
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final
	}
	if a, ok := errors.AsType[*AnswerError](err); ok {
		return met && (a.isPage() || a.Fault == FaultEmpty)
	}
	if is[*RedirectError](err) {
		return met
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && s.Status >= http.StatusInternalServerError && s.RetryAfter == 0
}

// TooHeavy tells whether a request failed as it does if its answer is more than the
// service can serve: with HTTP status 504, cut short, or not within the time limit.
func TooHeavy(err error) bool { return !is[*OutageError](err) && isHeavy(err) }

func isHeavy(err error) bool {
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final && !n.Unreached()
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Status == http.StatusGatewayTimeout
	}
	if r, ok := errors.AsType[interface {
		Refusal
		HTTPStatus() int
	}](err); ok {
		return r.HTTPStatus() == http.StatusGatewayTimeout
	}
	a, ok := errors.AsType[*AnswerError](err)
	return ok && a.Fault == FaultCut
}

// isUnsent tells whether an attempt failed because no connection could be made.
func isUnsent(err error) bool {
	n, ok := errors.AsType[*NetworkError](err)
	return ok && n.unsent
}

// MayBeDone tells whether a request that failed may have been carried out: it was
// sent, and the service did not refuse it.
func MayBeDone(err error) bool {
	if r, ok := errors.AsType[Refusal](err); ok {
		return r.Class() == ClassUnavailable
	}
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final && !n.unsent
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Status != http.StatusTooManyRequests
	}
	return is[*AnswerError](err) && !is[*NotServiceError](err)
}
