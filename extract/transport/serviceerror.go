package transport

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
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

	CodeNone = -1 // an error without a readable code
)

// ServiceError reports an error with which the service answered (specification,
// section 7), whatever the HTTP status.
type ServiceError struct {
	Code       int
	Message    string        // the service's own words, with the API key redacted
	Status     int           // HTTP status
	RetryAfter time.Duration // from the Retry-After header, 0 if there was none
	Sent       string        // the parameters of the request, with the API key redacted
	Asked      string        // what the caller asked for, such as a view; "" for nothing in particular
	KeyFrom    string        // what the API key was read from, "" if unknown
	Base       *url.URL      // the service's address, nil if unknown
	ListForms  string        // the command that lists the forms, "" if unknown
	// ByStatus is set if the service sends no error codes (API v2). Then Code is the code of API v1
	// with the meaning of the HTTP status.
	ByStatus bool
}

// Error names the code, its meaning by the specification and the service's words. If the
// service refuses a parameter, it also tells what was sent.
func (e *ServiceError) Error() string {
	kind, number := "error", e.Code
	if e.ByStatus {
		kind, number = "HTTP status", e.Status
	}
	sent := ""
	if e.Sent != "" && (e.Code == CodeInvalidValue || e.Code == CodeInvalidID) {
		sent = "; formetl sent " + e.Sent
	}
	meaning := cmp.Or(codes[e.Code].meaning, "a code that is not in the specification")
	message := cmp.Or(strings.Join(strings.Fields(e.Message), " "), "without a message") // on one line
	refused := ""
	if e.Code == CodeInvalidKey && e.KeyFrom != "" {
		refused = "the API key in " + e.KeyFrom + " was refused: "
	}
	return fmt.Sprintf("%sthe service answered %s %d (%s): %s%s%s", refused, kind, number, meaning, message, sent, ComeBack(e.RetryAfter))
}

const notTaken = "the service does not take what formetl sent; try the other API (api: v1 or v2 in the definition, --api in a command without one), or send this message to those who run the service"

// codes are the error codes of the specification: the meaning in its words, the exit code of a
// command, the class for another attempt, and a hint on what to check.
var codes = map[int]struct {
	meaning string
	exit    int // 0: the exit code follows from class, see ExitCode
	class   Class
	hint    string
}{
	CodeUnexpected:   {"unexpected error", 0, ClassDoubtful, ""},
	CodeInvalidURL:   {"invalid or incomplete API URL", 78, ClassFinal, ""},
	CodeInvalidValue: {"invalid URL parameter value", 0, ClassFinal, notTaken},
	CodeBusy:         {"system too busy", 0, ClassBusy, ""},
	CodeInvalidKey:   {"invalid API key", 77, ClassFinal, "copy the API key from the form's API page again; for API v2 it is the account's token"},
	CodeInvalidUser:  {"invalid user", 66, ClassFinal, "check the account: it comes after the host in the address of a form, https://HOST/ACCOUNT/FORM"},
	CodeInvalidForm:  {"invalid form", 66, ClassFinal, "check the form's name; `%s` lists the forms of the account"},
	CodeInvalidID:    {"invalid result ID", 0, ClassFinal, notTaken},
}

// ExitCode is the exit code listed in codes, or 75 where the same request may succeed later, or 69.
func (e *ServiceError) ExitCode() int { return cmp.Or(codes[e.Code].exit, codeIf(e.Temporary())) }

// Hint says what to check after the service refused the request, "" if nothing is known.
func (e *ServiceError) Hint() string {
	if e.Code == CodeInvalidValue && e.Asked != "" {
		return "the likely cause is what was asked for: " + e.Asked + "; give another, or leave it out"
	}
	hint := strings.Replace(codes[e.Code].hint, "%s", cmp.Or(e.ListForms, "formetl forms"), 1)
	if code := e.ExitCode(); e.Base != nil && e.Base.Path != "" && (code == 78 || code == 66) {
		return "the base URL has a path; unless you were told to use this path, write " + e.Base.Scheme + "://" + e.Base.Host + strings.TrimSuffix("; otherwise "+hint, "; otherwise ")
	}
	return hint
}

// Class tells what the error means for another attempt. The HTTP statuses 429 and 503 count,
// unless section 7 of the specification says that the code blames the request. Where the
// service sends no codes (ByStatus), each 5xx is worth as many attempts as 503.
func (e *ServiceError) Class() Class {
	code, listed := codes[e.Code]
	switch {
	case listed && e.Code != CodeUnexpected:
		return code.class
	case e.Status == http.StatusTooManyRequests:
		return ClassBusy
	case e.Status == http.StatusServiceUnavailable, e.ByStatus && e.Status >= http.StatusInternalServerError:
		return ClassUnavailable
	case listed, e.Code == CodeNone:
		return ClassDoubtful
	}
	return ClassFinal
}

// Temporary tells whether the same request may succeed later.
func (e *ServiceError) Temporary() bool { return e.Class() >= ClassUnavailable }

// complete adds what only the sender knows. An HTTP status of 400 or more counts before the
// status that the body names, which counts only where the HTTP status reports success.
func (e *ServiceError) complete(h Header, call Call, cfg Config) {
	if h.Status >= http.StatusBadRequest || e.Status == 0 {
		e.Status = h.Status
	}
	if e.ByStatus {
		e.Code = codeOf(e.Status, call.Form != "")
	}
	e.RetryAfter, e.Message = h.RetryAfter, cfg.Key.Redact(e.Message)
	e.KeyFrom, e.ListForms = cfg.Key.from, cfg.ListForms
	e.Sent, e.Asked = cfg.Key.Redact(call.Parameters.String()), cfg.Key.Redact(call.Asked)
}

// codeOf returns the code whose meaning an HTTP status has (service-v2.md, section 7).
// form tells that the request concerned a form.
func codeOf(status int, form bool) int {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return CodeInvalidKey
	case status == http.StatusNotFound && form:
		return CodeInvalidForm
	case status == http.StatusNotFound:
		return CodeInvalidUser
	case status == http.StatusUnprocessableEntity, status == http.StatusBadRequest:
		return CodeInvalidValue
	case status == http.StatusTooManyRequests:
		return CodeBusy
	case status >= http.StatusInternalServerError:
		return CodeUnexpected
	}
	return CodeNone
}
