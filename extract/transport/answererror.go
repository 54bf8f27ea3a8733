package transport

import (
	"fmt"
	"net/http"
)

// Fault tells what is wrong with an answer that cannot be read. The Fault decides
// whether sending the request again may help.
type Fault uint8

// The faults. A well-formed answer follows the rules of its format, such as XML.
const (
	FaultWrong   Fault = iota // well-formed, but not what the specification promises
	FaultBeyond               // larger than a bound, or in an unsupported encoding
	FaultForeign              // well-formed or a redirect, but not from the service
	FaultGarbled              // not well-formed: a web page, plain text, a damaged answer
	FaultCut                  // ends too early
	FaultEmpty                // holds nothing
)

// AnswerError is an answer that cannot be read: empty, not well-formed,
// truncated, beyond a bound, or without what the specification promises.
type AnswerError struct {
	Offset  int    // byte offset in the answer, -1 if no place can be named
	Problem string // what is wrong, without the answer's text
	Fault   Fault
	Ours    bool   // the answer has what only the service's answers have, such as its root element
	Status  int    // HTTP status, 0 if unknown
	API     string // the generation of the service that answers so, if it is not the one that was asked for
	// WebPages is how many attempts the request had, if each got this same web page or a redirect,
	// and nothing in this run was answered by the service itself. Otherwise it is 0.
	WebPages int

	sum    uint64 // hash of the answer, to tell whether the next one is the same
	varies bool   // another attempt of the request ended in another way
}

// Error names the problem and its byte offset in the answer.
func (e *AnswerError) Error() string {
	switch {
	case e.NotService() && e.API != "":
		return fmt.Sprintf("the service may speak API %s instead: its answer with HTTP status %d is %s", e.API, e.Status, e.Problem)
	case e.NotService():
		return fmt.Sprintf("what answers at the base URL does not seem to be the service: %s (HTTP status %d)", e.Problem, e.Status)
	}
	s := "the answer cannot be read: " + e.Problem
	if e.Offset >= 0 {
		s += fmt.Sprintf(" (byte %d)", e.Offset)
	}
	if e.Status != 0 && e.Status != http.StatusOK {
		s += fmt.Sprintf(" (HTTP status %d)", e.Status)
	}
	return s
}

// Temporary tells whether sending the request again may help. An empty, cut or garbled answer
// was most likely damaged on its way, or comes from a proxy, as a web page does. Any other
// faulty answer comes again, unless another attempt of the request ended in another way.
func (e *AnswerError) Temporary() bool {
	return !e.NotService() && (e.Fault >= FaultGarbled || e.isPage() || e.varies)
}

// NotService tells whether the base URL is not the service's address, or not that of its API.
func (e *AnswerError) NotService() bool { return e.WebPages > 0 }

// ExitCode is 78 where the address is not the service's, 75 where sending the request again may
// help, and otherwise 65: the service sends the unreadable answer each time.
func (e *AnswerError) ExitCode() int {
	switch {
	case e.NotService():
		return 78
	case e.Temporary():
		return 75
	}
	return 65
}

// Hint says what to check, or to do if the answer comes again each time; otherwise it is "".
func (e *AnswerError) Hint() string {
	switch {
	case e.NotService() && e.API != "":
		return fmt.Sprintf("write api: %[1]s below source: in the definition, or give --api %[1]s to a command without a definition; if that does not help, check base_url", e.API)
	case e.NotService():
		return "set base_url (--base-url, FORMETL_BASE_URL) to the service's own address, such as https://fs1.example.com; if it was right before, this may be a login or maintenance page: open the address in a browser, and run again"
	case !e.Temporary():
		return "check that base_url is the service's own address; if it is, send this message to those who run the service, or try the other API (api: v1 or v2 in the definition, --api in a command without one)"
	}
	return ""
}

// isPage tells whether the whole answer comes from something other than the
// service, such as the web page of a proxy.
func (e *AnswerError) isPage() bool {
	return !e.Ours && (e.Fault == FaultForeign || e.Fault == FaultGarbled)
}

// redirects tells whether the answer sends the client to another address.
func (e *AnswerError) redirects() bool {
	return e.Status >= http.StatusMultipleChoices && e.Status < http.StatusBadRequest
}

// Wrong returns the error for a well-formed answer that lacks content that is required.
func Wrong(problem string) error {
	return &AnswerError{Offset: -1, Problem: problem, Fault: FaultWrong, Ours: true}
}
