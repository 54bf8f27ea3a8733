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
