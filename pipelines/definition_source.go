package pipelines

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
)

func (r *definitionReader) readSource(v value) {
	v.section(
		field{"base_url", true, func(v value) { r.baseURL = v }},
		field{"account", true, r.readAccount},
		field{"api_key", false, r.readKey},
		field{"timezone", true, r.readZone},
		field{"allow_http", false, func(v value) { r.def.Source.AllowHTTP, _ = v.boolean() }},
		field{"requests", false, r.readRequests},
	)
	if r.baseURL.given() {
		r.readBaseURL(r.baseURL)
	}
}

// readBaseURL checks the server's address. What stands there may hold a key
// (in a query, as a password) and is never shown.
func (r *definitionReader) readBaseURL(v value) {
	v.secret = true
	const remedy = "write the server's HTTPS address only, such as https://fs1.example.com"
	text, ok := v.text()
	if !ok {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		v.fail(remedy, "this is not the address of a server")
	case u.Scheme != "https" && u.Scheme != "http":
		v.fail(remedy, "the address begins with neither https:// nor http://")
	case u.User != nil:
		v.fail(remedy, "a user name or password cannot stand in the address")
	case u.RawQuery != "" || u.ForceQuery:
		v.fail(remedy, "the address ends with a query (?…)")
	case u.Fragment != "" || strings.Contains(text, "#"):
		v.fail(remedy, "the address ends with a fragment (#…)")
	case strings.Contains(u.Path+"/", "/api/users/"):
		v.fail(remedy+"; /api/users/… is added by formetl", "the address goes on into the interface's paths")
	case u.Scheme == "http" && !transport.IsLoopback(u.Hostname()) && !r.def.Source.AllowHTTP:
		v.fail("write https://, or allow plain HTTP with source.allow_http: true where the network is trusted", "plain HTTP would send the API key unprotected to a host that is not this machine")
	default:
		r.def.Source.BaseURL = strings.TrimRight(text, "/")
	}
}

func (r *definitionReader) readAccount(v value) {
	account, ok := v.text()
	if !ok {
		return
	}
	if err := checkPathName("account", account); err != nil {
		v.fail("write the account's URL extension only, such as acme", "%s is not an account: it %s", show(account), err.Reason)
		return
	}
	r.def.Source.Account = account
}

func (r *definitionReader) readZone(v value) {
	name, ok := v.text()
	if !ok {
		return
	}
	zone, err := LoadZone(name)
	if err != nil {
		v.failWith(err, "")
		return
	}
	r.def.Source.Zone = zone
}

// LoadZone returns the zone of an IANA name. "Local" is refused: it means
// another zone on another machine. The error names the nearest zone.
func LoadZone(name string) (*time.Location, error) {
	zone, err := zoneOf(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not a time zone that this machine knows; %s", show(name), zoneRemedy(name))
	}
	return zone, nil
}

func zoneOf(name string) (*time.Location, error) {
	if name == "" || strings.EqualFold(name, "local") {
		return nil, errors.New("no IANA name")
	}
	return time.LoadLocation(name)
}

func zoneRemedy(name string) string {
	const remedy = "write an IANA name, such as America/Chicago, Europe/Berlin or UTC"
	parts := strings.FieldsFunc(strings.TrimSpace(name), func(r rune) bool { return r == '/' })
	for i, p := range parts {
		words := strings.FieldsFunc(p, func(r rune) bool { return r == ' ' || r == '_' })
		for j, w := range words {
			words[j] = strings.ToUpper(w[:1]) + strings.ToLower(w[1:])
		}
		parts[i] = strings.Join(words, "_")
	}
	if guess := strings.Join(parts, "/"); guess != "" && guess != name {
		if _, err := zoneOf(guess); err == nil {
			return "did you mean " + guess + "?"
		}
	}
	if near := nearest(name, commonZones()); near != "" {
		return "did you mean " + near + "?"
	}
	return remedy
}

// commonZones are suggested for a name with a typing error. Any IANA name is
// accepted.
func commonZones() []string {
	return []string{
		"UTC", "America/New_York", "America/Chicago", "America/Denver", "America/Phoenix", "America/Los_Angeles",
		"America/Anchorage", "America/Toronto", "America/Vancouver", "America/Halifax", "America/Mexico_City",
		"America/Sao_Paulo", "America/Bogota", "America/Indiana/Indianapolis", "Pacific/Honolulu", "Pacific/Auckland",
		"Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Paris", "Europe/Madrid", "Europe/Berlin",
		"Europe/Rome", "Europe/Vienna", "Europe/Zurich", "Europe/Amsterdam", "Europe/Stockholm", "Europe/Helsinki",
		"Europe/Warsaw", "Europe/Athens", "Europe/Istanbul", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos",
		"Asia/Jerusalem", "Asia/Dubai", "Asia/Kolkata", "Asia/Singapore", "Asia/Hong_Kong", "Asia/Shanghai",
		"Asia/Tokyo", "Asia/Seoul", "Australia/Sydney", "Australia/Melbourne", "Australia/Brisbane", "Australia/Perth",
	}
}

func (r *definitionReader) readRequests(v value) {
	q := &r.def.Source.Requests
	whole := func(target *int, least, most int) func(value) {
		return func(v value) {
			if n, ok := v.integer(least, most); ok {
				*target = n
			}
		}
	}
	v.section(
		field{"concurrency", false, whole(&q.Concurrency, 1, maxConcurrency)},
		field{"per_minute", false, whole(&q.PerMinute, 0, maxBudget)},
		field{"per_day", false, whole(&q.PerDay, 0, maxBudget)},
		field{"timeout", false, func(v value) {
			if d, ok := v.span(time.Millisecond, maxTimeout); ok {
				q.Timeout = d
			}
		}},
		field{"retries", false, whole(&q.Retries, 0, maxRetries)},
		field{"max_requests", false, whole(&q.MaxRequests, 1, maxBudget)},
	)
}

// span reads a length of time between least and most.
func (v value) span(least, most time.Duration) (time.Duration, bool) {
	text, ok := v.text()
	if !ok {
		return 0, false
	}
	d, err := ParseSpan(text)
	if err != nil {
		v.failWith(err, "")
		return 0, false
	}
	if d < least || d > most {
		v.fail("write a length of time from "+least.String()+" to "+most.String(), "%s is out of range", show(text))
		return 0, false
	}
	return d, true
}

// failWith reports an error that says "what; remedy", or only what: then the
// remedy is otherwise.
func (v value) failWith(err error, otherwise string) {
	message, remedy := err.Error(), otherwise
	if i := strings.LastIndex(message, "; "); i >= 0 { // the value, which comes first, may hold one too
		message, remedy = message[:i], message[i+2:]
	}
	v.fail(remedy, "%s", message)
}
