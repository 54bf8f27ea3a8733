package transport

import (
	"errors"
	"net/http"
	"time"
)

// Refusal is an error that the service itself answered with. Each generation of
// the service has a type for it, which classes its codes.
type Refusal interface {
	error
	// Class tells what the refusal means for another attempt.
	Class() Class
	// ComeAfter is the pause that the service asks for, 0 where it asks for none.
	ComeAfter() time.Duration
}

// Class is what a refusal means for another attempt.
type Class uint8

// The classes.
const (
	ClassFinal       Class = iota // the same request is refused again
	ClassDoubtful                 // most likely it is refused again
	ClassUnavailable              // no room; the request may have been carried out
	ClassBusy                     // no room; the request was turned away before it did anything
)

// The outcomes of an attempt. Every attempt that was sent has exactly one.
const (
	OutcomeOK        = "ok"        // the answer that was asked for
	OutcomeBusy      = "busy"      // no room: a refusal that says so, HTTP status 429 or 503; a refusal that blames the request does not, whatever the status
	OutcomeRefused   = "refused"   // any other refusal of the service, a redirect, and HTTP status 4xx without a refusal
	OutcomeFailed    = "failed"    // no whole answer: the network, a timeout, a cut answer; and HTTP status 5xx without a refusal
	OutcomeInvalid   = "invalid"   // an answer with another status that is not what it should be
	OutcomeCancelled = "cancelled" // the caller did not wait for the answer
)

// is tells whether err is an E or wraps one.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// classOf classes the error of an attempt, and tells how long the server asks to wait.
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
	case s.Status == http.StatusServiceUnavailable: // a proxy says it too, whatever became of the request
		return ClassUnavailable, s.RetryAfter
	}
	return ClassFinal, s.RetryAfter
}

// outcomeOf classes the error of an attempt whose caller still waits for it.
// status is that of the answer, 0 where there was none.
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

// isAnswer tells whether the service itself answered an attempt, if only that it
// has no room.
func isAnswer(err error) bool {
	return err == nil || is[Refusal](err) || is[*StatusError](err) && !isAbsence(err, true)
}

// isOwn tells whether an attempt brought something of the service, damaged or not.
func isOwn(err error) bool {
	a, ok := errors.AsType[*AnswerError](err)
	return err == nil || is[Refusal](err) || ok && a.Ours
}

// isAbsence tells whether an attempt failed because the service was not there: the
// network, a timeout, HTTP status 5xx without a Retry-After. A foreign page or an
// empty answer says the same where the service was met before. Where it never
// was, the base URL may be wrong, and waiting would not help.
func isAbsence(err error, met bool) bool {
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final
	}
	if a, ok := errors.AsType[*AnswerError](err); ok {
		return met && (a.isPage() || a.Fault == FaultEmpty)
	}
	s, ok := errors.AsType[*StatusError](err)
	return ok && s.Status >= http.StatusInternalServerError && s.RetryAfter == 0
}

// MayBeDone tells whether a request that failed may have been carried out: it was
// sent, and the service did not refuse it.
func MayBeDone(err error) bool {
	if n, ok := errors.AsType[*NetworkError](err); ok {
		return !n.Final && !n.unsent
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Status != http.StatusTooManyRequests
	}
	return is[*AnswerError](err) && !is[*NotServiceError](err)
}
