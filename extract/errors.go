package extract

import (
	"fmt"
	"net/http"
	"time"
)

// Error codes of the service (specification, section 7).
const (
	CodeUnexpected   = 0
	CodeInvalidURL   = 1
	CodeInvalidValue = 2
	CodeBusy         = 3
	CodeInvalidKey   = 100
	CodeInvalidUser  = 101
	CodeInvalidForm  = 102
	CodeInvalidID    = 103
)

// ServiceError is an error envelope that the service answered with
// (specification, section 7), whatever the HTTP status that carried it.
type ServiceError struct {
	Code       int
	Message    string        // the service's own words, with the API key redacted
	Status     int           // HTTP status
	RetryAfter time.Duration // from the Retry-After header, 0 if there was none
}

// Error names the code, its meaning by the specification and the service's words.
func (e *ServiceError) Error() string {
	return fmt.Sprintf("the service answered error %d (%s): %s%s", e.Code, codeMeaning(e.Code), e.Message, comeBack(e.RetryAfter))
}

// comeBack tells what a Retry-After header asked for.
func comeBack(after time.Duration) string {
	if after <= 0 {
		return ""
	}
	return fmt.Sprintf(" (it asks to come back after %s)", after.Round(time.Second))
}

// Temporary tells whether the same request may succeed later: a busy system
// (3), and with HTTP status 429 or 503 any code but those of section 7 that
// blame the request.
func (e *ServiceError) Temporary() bool {
	switch e.Code {
	case CodeBusy:
		return true
	case CodeInvalidURL, CodeInvalidValue, CodeInvalidKey, CodeInvalidUser, CodeInvalidForm, CodeInvalidID:
		return false
	}
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

func codeMeaning(code int) string {
	switch code {
	case CodeUnexpected:
		return "unexpected error"
	case CodeInvalidURL:
		return "invalid or incomplete API URL"
	case CodeInvalidValue:
		return "invalid URL parameter value"
	case CodeBusy:
		return "system too busy"
	case CodeInvalidKey:
		return "invalid API key"
	case CodeInvalidUser:
		return "invalid user"
	case CodeInvalidForm:
		return "invalid form"
	case CodeInvalidID:
		return "invalid result ID"
	}
	return "a code that the specification does not list"
}

// AnswerError is an answer that cannot be read: not XML, truncated, beyond a
// bound, or without what the specification promises.
type AnswerError struct {
	Offset  int    // byte offset in the answer, -1 where no place can be named
	Problem string // what is wrong, without the answer's text

	cut bool // it ends too early: most likely on its way
}

// Error names the problem and its place.
func (e *AnswerError) Error() string {
	if e.Offset < 0 {
		return "the answer cannot be read: " + e.Problem
	}
	return fmt.Sprintf("the answer cannot be read: %s (byte %d)", e.Problem, e.Offset)
}

// DataFault is true: the service gives what cannot be read.
func (e *AnswerError) DataFault() bool { return true }

// OrderError is a page whose results do not follow in ascending order of id
// where earlier pages of the window did: the service keeps another order, and
// results may have been passed over. A window that is begun again with the
// same Reader is read by page numbers and sorted.
type OrderError struct {
	After int64 // the last result that came in order
}

// Error says what came out of order.
func (e *OrderError) Error() string { return e.Unwrap().Error() }

// Unwrap returns it as an *AnswerError.
func (e *OrderError) Unwrap() error {
	return &AnswerError{Offset: -1, Problem: fmt.Sprintf("its results do not follow result %d in ascending order, as those of the page before did", e.After)}
}
