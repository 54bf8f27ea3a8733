package transport

import (
	"fmt"
	"net/http"
)

// Fault tells what is wrong with an answer that cannot be read, and so whether
// asking again may help.
type Fault uint8

// The faults. An answer is well-formed by the rules of its format.
const (
	FaultWrong   Fault = iota // well-formed without what it must hold
	FaultBeyond               // beyond a bound, or in an encoding that is not read
	FaultForeign              // well-formed and not of the service
	FaultGarbled              // not well-formed: a page for people, a text, a damaged answer
	FaultCut                  // ends too early
	FaultEmpty                // holds nothing
)

// AnswerError is an answer that cannot be read: empty, not well-formed,
// truncated, beyond a bound, or without what the specification promises.
type AnswerError struct {
	Offset  int    // byte offset in the answer, -1 where no place can be named
	Problem string // what is wrong, without the answer's text
	Fault   Fault
	Ours    bool // it is in the service's own envelope

	status int    // HTTP status, 0 where it is not known
	sum    uint64 // hash of the answer, to tell whether the next one is the same
	varies bool   // the same request was answered otherwise before
}

// Error names the problem and its place.
func (e *AnswerError) Error() string {
	s := "the answer cannot be read: " + e.Problem
	if e.Offset >= 0 {
		s += fmt.Sprintf(" (byte %d)", e.Offset)
	}
	if e.status != 0 && e.status != http.StatusOK {
		s += fmt.Sprintf(" (HTTP status %d): is the base URL the service's?", e.status)
	}
	return s
}

// Temporary tells whether trying again may help. What is empty, cut or garbled
// was most likely damaged on its way, or comes from a proxy. What is well-formed
// and wrong comes again, unless the service answered otherwise before.
func (e *AnswerError) Temporary() bool { return e.Fault >= FaultGarbled || e.varies }

// DataFault tells whether the service gives what cannot be read, each time.
func (e *AnswerError) DataFault() bool { return !e.Temporary() }

// isPage tells whether the whole answer is not of the service: what a web server
// sends at another address.
func (e *AnswerError) isPage() bool {
	return !e.Ours && (e.Fault == FaultForeign || e.Fault == FaultGarbled)
}

// NotServiceError is a request that brought the same page at each try, which is
// not of the service, in a run to which the service never answered.
type NotServiceError struct {
	Tries int
	Err   *AnswerError // what is wrong with the page
}

// Error says what came and what to do.
func (e *NotServiceError) Error() string {
	tries := "the only try gave a page"
	if e.Tries > 1 {
		tries = fmt.Sprintf("each of %d tries gave the same page", e.Tries)
	}
	return fmt.Sprintf("nothing that this run was answered came from the service: %s with HTTP status %d (%s); set base_url to the service's own address", tries, e.Err.status, e.Err.Problem)
}

// Unwrap returns what is wrong with the page.
func (e *NotServiceError) Unwrap() error { return e.Err }

// Temporary is false: the base URL has to change.
func (e *NotServiceError) Temporary() bool { return false }

// DataFault is false, because the page is not data of the service.
func (e *NotServiceError) DataFault() bool { return false }

// TooLarge is an answer of more than so many bytes.
func TooLarge(most int64) error {
	return &AnswerError{Offset: -1, Problem: fmt.Sprintf("it is larger than the bound of %d bytes", most), Fault: FaultBeyond}
}
