package transport

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// RequestError reports a request that failed for good. It never holds the API key.
type RequestError struct {
	Transaction string // the transaction's name in the specification: "Get Results"
	Form        string // "" for Get Forms
	Asked       string // what the caller asked for, such as a view; "" for nothing special
	Attempts    int
	Err         error
}

// Error names the transaction, the form, what was asked for and the cause.
func (e *RequestError) Error() string {
	on := ""
	if e.Form != "" {
		on = " of form " + e.Form
	}
	if e.Asked != "" {
		on += " (" + e.Asked + ")"
	}
	times := ""
	if _, away := errors.AsType[*OutageError](e.Err); e.Attempts > 1 && !away { // an outage counts the attempts of all requests
		times = fmt.Sprintf(" after %d attempts", e.Attempts)
	}
	return fmt.Sprintf("%s%s failed%s: %v", e.Transaction, on, times, e.Err)
}

// Unwrap returns the last attempt's error.
func (e *RequestError) Unwrap() error { return e.Err }

// NetworkError reports an attempt that got no whole answer, because of a
// refused or cut connection, a timeout or a failed handshake.
type NetworkError struct {
	Problem string // what is wrong, without the address, which would hold the API key
	Final   bool   // trying again cannot help: an untrusted certificate, a server without TLS

	doubtful bool   // trying again hardly helps: the host is unknown
	unsent   bool   // there was no connection to send the request on
	remedy   string // what to do about the problem; "" if Hint tells it by the other fields
}

// Error names what is wrong.
func (e *NetworkError) Error() string { return "network: " + e.Problem }

// ExitCode is 75 where trying again may help, else 69.
func (e *NetworkError) ExitCode() int { return codeIf(e.Temporary()) }

// Hint says what to write, or what to check where there was no connection.
func (e *NetworkError) Hint() string {
	if e.remedy == "" && e.unsent && !e.Final {
		return "check the base URL, and whether the service is up; then run the same command again"
	}
	return e.remedy
}

// Unreached tells whether there was no connection, so that the address may be wrong.
func (e *NetworkError) Unreached() bool { return e.unsent || e.doubtful }

// Temporary tells whether trying again may help.
func (e *NetworkError) Temporary() bool { return !e.Final }

// StatusError reports an HTTP error status with an answer that is not the
// service's, such as the error page of a proxy.
type StatusError struct {
	Status     int
	RetryAfter time.Duration // from the Retry-After header, 0 if there was none
}

// Error names the HTTP status and the pause that the server asks for.
func (e *StatusError) Error() string {
	return fmt.Sprintf("HTTP status %s, with an answer that is not the service's but perhaps a proxy's%s", strings.TrimSpace(fmt.Sprint(e.Status, " ", http.StatusText(e.Status))), ComeBack(e.RetryAfter))
}

// ExitCode is 75 where trying again may help, else 69.
func (e *StatusError) ExitCode() int { return codeIf(e.Temporary()) }

// Temporary tells whether trying again may help: 429 and 5xx.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// ComeBack returns a text about the pause that a Retry-After header asks for, "" for 0.
func ComeBack(after time.Duration) string {
	if after <= 0 {
		return ""
	}
	return fmt.Sprintf(" (it asks to wait %s)", after.Round(time.Second))
}

// BudgetError says that a request budget is used up.
type BudgetError struct {
	Limit int           // requests that the budget allows
	Per   time.Duration // the time for which Limit holds: a minute or 24 hours
	Until time.Time     // when the next request may be sent
}

// ComeBack returns Until as text, rounded up to a full second, with its zone.
func (e *BudgetError) ComeBack() string {
	return RoundUp(e.Until).Format(time.RFC3339)
}

// RoundUp returns the first full second that is not before t, so that nobody comes back too early.
func RoundUp(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// Error says which budget is used up and when the next request may be sent.
func (e *BudgetError) Error() string {
	per := e.Per.String()
	switch e.Per {
	case time.Minute:
		per = "minute"
	case 24 * time.Hour:
		per = "24 hours"
	}
	return fmt.Sprintf("formetl's budget of %d requests per %s is used up; the next request can be sent at %s", e.Limit, per, e.ComeBack())
}

// ExitCode is 75: the budget refills.
func (e *BudgetError) ExitCode() int { return 75 }

// Hint says after what time to run the command again.
func (e *BudgetError) Hint() string {
	hint := "run the same command again after " + e.ComeBack()
	if e.Per == 24*time.Hour {
		hint += ", or raise source.requests.per_day in the definition, if the service allows it"
	}
	return hint
}

// Temporary is true, because the budget refills.
func (e *BudgetError) Temporary() bool { return true }

// OutageError says that no request reached the service for longer than Config.Patience (or
// Config.FirstPatience). All waiting requests fail with this error.
type OutageError struct {
	Since    time.Time // when the first of the failed attempts failed
	Attempts int       // failed attempts in a row, of all requests
	Last     error     // the error of the last attempt
}

// Error says since when the service is away, how many attempts failed, and what to do.
func (e *OutageError) Error() string {
	return fmt.Sprintf("the service has not answered since %s: %d attempts in a row failed, the last with: %v", e.Since.Format(time.RFC3339), e.Attempts, e.Last)
}

// Unwrap returns the last attempt's error.
func (e *OutageError) Unwrap() error { return e.Last }

// ExitCode is 75: outages end.
func (e *OutageError) ExitCode() int { return 75 }

// Hint is the hint of the last attempt's error if that is a *NetworkError, otherwise "".
func (e *OutageError) Hint() string {
	if last, ok := errors.AsType[*NetworkError](e.Last); ok {
		return last.Hint()
	}
	return ""
}

// Temporary is true, because outages end.
func (e *OutageError) Temporary() bool { return true }

// codeIf returns the exit code 75 of an error that is temporary, else 69.
func codeIf(temporary bool) int {
	if temporary {
		return 75
	}
	return 69
}

// Temporary tells whether err, or an error that it wraps, says by its method Temporary that trying
// again may help.
func Temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// Error is a failure that callers distinguish from others only by its exit code, such as a
// mistake in a configuration.
type Error struct {
	Code    int    // the exit code of a command that fails with it
	Problem string // what is wrong; also what to do about it, unless Remedy says that
	Remedy  string
	Err     error // what caused it, nil for nothing else
}

// Error returns Problem, and the text of Err if there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Problem + ": " + e.Err.Error()
	}
	return e.Problem
}

// ExitCode returns Code.
func (e *Error) ExitCode() int { return e.Code }

// Hint returns Remedy.
func (e *Error) Hint() string { return e.Remedy }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Temporary is false, even where Err is temporary: trying the same again changes nothing.
func (e *Error) Temporary() bool { return false }
