package v2

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// object is a JSON object of an answer other than a page of results. A member that is missing or
// has an unexpected type reads as empty, because the types are not certain (service-v2.md).
type object map[string]json.RawMessage

// parse reads a whole answer that must be an object.
func parse(body []byte) (object, error) {
	first, err := contentOf(body)
	if err != nil {
		return nil, err
	}
	s := scanner{Scanner: extract.Scanner{Buf: body, Pos: first}}
	if err := s.skip(); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	if body[first] != '{' {
		return nil, s.Problem(transport.FaultForeign, -1, "not from the service: it is an array")
	}
	return objectOf(body[first:]), nil
}

// objectOf reads raw as an object; nil for any other value.
func objectOf(raw []byte) (o object) {
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// listOf reads raw as an array and returns its elements; nil for any other value.
func listOf(raw []byte) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// textOf returns the text of a string, or a number, true or false as written. It is "" for any
// other value. Characters that API v1 cannot send become U+FFFD.
func textOf(raw []byte) string {
	var text string
	switch {
	case len(raw) == 0 || strings.IndexByte("{[n", raw[0]) >= 0:
		return ""
	case raw[0] != '"':
		return string(raw)
	case json.Unmarshal(raw, &text) != nil:
		return ""
	}
	return strings.Map(func(r rune) rune {
		if !page.Allowed(r) {
			return '\ufffd'
		}
		return r
	}, text)
}

// text returns the trimmed text of the member with this name, see textOf.
func (o object) text(name string) string { return strings.TrimSpace(textOf(o[name])) }

// number returns the first of the named members that is a whole number from 0; false if none is.
func (o object) number(names ...string) (n int64, ok bool) {
	for _, name := range names {
		if n, err := strconv.ParseInt(o.text(name), 10, 64); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}

// failureOf returns the error that the member error of an answer reports
// (service-v2.md, section 7). raw, the member's value, is an object or a text.
func failureOf(raw []byte) *transport.ServiceError {
	o := objectOf(raw)
	e := &transport.ServiceError{Message: o.text("message"), ByStatus: true}
	if o == nil {
		e.Message = strings.TrimSpace(textOf(raw))
	}
	if status, ok := o.number("status"); ok && status < 1000 {
		e.Status = int(status)
	}
	return e
}

// refusalOf returns the error of an answer whose HTTP status is 400 or more. It is a
// *transport.ServiceError unless the body did not come from the service.
func refusalOf(status int, body []byte) error {
	o, err := parse(body)
	a, _ := err.(*transport.AnswerError) //nolint:errorlint // parse returns no other
	switch {
	case err == nil && o["error"] != nil:
		return failureOf(o["error"])
	case err == nil && status < http.StatusInternalServerError:
		return &transport.ServiceError{Message: o.text("message"), ByStatus: true}
	case err == nil:
		return &transport.AnswerError{Offset: -1, Problem: `not from the service: it has no "error"`, Fault: transport.FaultForeign}
	case status == http.StatusUnauthorized, a != nil && a.Fault == transport.FaultEmpty && status < http.StatusInternalServerError:
		return &transport.ServiceError{ByStatus: true}
	}
	return err
}
