package definition

import (
	"fmt"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/schemas/plain"
)

func (r *reader) readSource(v value) {
	s := &r.def.Source
	values := v.Section(
		required("base_url", nil),
		optional("api", intoOneOf(&s.API, APIv1, APIv2, APIAuto)),
		required("account", intoParsed(&s.Account, pathName("account"), "")),
		optional("api_key", nil),
		required("timezone", intoParsed(&s.Zone, LoadZone, "")),
		optional("allow_http", intoBoolean(&s.AllowHTTP)),
		optional("requests", func(v value) { readRequests(v, &s.Requests) }),
	)
	s.SetAPI(s.API)
	if address, given := values["base_url"]; given {
		r.readBaseURL(address)
	}
	r.readKey(v, values["api_key"])
}

// readBaseURL reads base_url, the address of the service. Messages never show the value, because
// it may hold a key in its query or as a password.
func (r *reader) readBaseURL(v value) {
	v = v.Hidden()
	text, ok := v.Text()
	if !ok {
		return
	}
	if _, err := transport.ParseBaseURL(text, r.def.Source.AllowHTTP); err != nil {
		v.FailWith(err, "")
		return
	}
	r.def.Source.BaseURL = strings.TrimRight(text, "/")
}

// LoadZone returns the time zone of an IANA name, such as Europe/Berlin. The error is of a name
// that is not known, or of "Local", which means different zones on different machines.
func LoadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("%s is not a time zone that this machine knows; write an IANA name, such as America/Chicago, Europe/Berlin or UTC", Quote(name))
	}
	return zone, nil
}

// SetAPI sets the generation by which runs ask the service, and its limits as the budgets of a
// source without OwnBudgets: those of API v2 also while the generation is not known.
func (s *Source) SetAPI(api API) {
	s.API = api
	if s.Requests.OwnBudgets {
		return
	}
	s.Requests.PerMinute, s.Requests.PerDay = 0, 0
	if api == APIv2 || api == APIAuto {
		s.Requests.PerMinute, s.Requests.PerDay = DefaultV2PerMinute, DefaultV2PerDay
	}
}

// readRequests reads the section requests: into q.
func readRequests(v value, q *Requests) {
	values := v.Section(
		optional("concurrency", intoInteger(&q.Concurrency, 1, maxConcurrency)),
		optional("per_minute", intoInteger(&q.PerMinute, 0, maxBudget)),
		optional("per_day", intoInteger(&q.PerDay, 0, maxBudget)),
		optional("timeout", intoParsed(&q.Timeout, spanWithin(time.Second, maxTimeout), "")),
		optional("retries", intoInteger(&q.Retries, 0, maxRetries)),
		optional("patience", intoParsed(&q.Patience, spanWithin(time.Second, maxPatience), "")),
		optional("max_requests", intoInteger(&q.MaxRequests, 1, maxBudget)),
	)
	_, minute := values["per_minute"]
	_, day := values["per_day"]
	q.OwnBudgets = minute || day
}

// spanWithin makes a parser of a length of time from least to most, both included.
func spanWithin(least, most time.Duration) func(text string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := ParseSpan(text)
		if err == nil && (d < least || d > most) {
			err = fmt.Errorf("%s is out of range; write a length of time from %s to %s", Quote(text), plain.Lasting(least), plain.Lasting(most))
		}
		return d, err
	}
}
