package extract

import (
	"errors"
	"net/http"
)

// What became of one attempt of a request. Every attempt that was sent has
// exactly one of them.
const (
	OutcomeOK        = "ok"        // the answer that was asked for
	OutcomeBusy      = "busy"      // no room: error 3, HTTP status 429 or 503; error codes 1, 2 and 100 to 103 blame the request whatever the status
	OutcomeRefused   = "refused"   // any other error of the service, a redirect, and HTTP status 4xx without an error of the service
	OutcomeFailed    = "failed"    // no whole answer: the network, a timeout, a cut answer; and HTTP status 5xx without an error of the service
	OutcomeInvalid   = "invalid"   // an answer with another status that is not what it should be
	OutcomeCancelled = "cancelled" // the caller did not wait for the answer
)

// outcomeOf classes the error of an attempt whose caller still waits for it.
// status is that of the answer, 0 where there was none.
func outcomeOf(err error, status int) string {
	if err == nil {
		return OutcomeOK
	}
	if isBusy(err) {
		return OutcomeBusy
	}
	if _, ok := errors.AsType[*ServiceError](err); ok {
		return OutcomeRefused
	}
	if _, ok := errors.AsType[*RedirectError](err); ok {
		return OutcomeRefused
	}
	if _, ok := errors.AsType[*AnswerError](err); ok {
		if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
			return OutcomeRefused
		}
		return OutcomeInvalid
	}
	return OutcomeFailed // *NetworkError, *StatusError
}
