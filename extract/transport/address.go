package transport

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// servicePath finds the paths of the service itself, below its address.
var servicePath = regexp.MustCompile(`/api(/users(/.*)?|/v[0-9]+(/.*)?)?/*$`)

// formPath finds the path of a form's page.
var formPath = regexp.MustCompile(`/([^/]+)/([^/]+)/index/*$`)

// ParseBaseURL checks the service's address: HTTPS, or plain HTTP to a loopback address.
// allowHTTP allows plain HTTP to any host. A user, query or fragment is an error, and so is a path
// of the service itself, such as /api, which requests add.
func ParseBaseURL(raw string, allowHTTP bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "": // err quotes the address, which may hold the API key
		return nil, &Error{Code: 78, Problem: "the base URL is not a valid address of http or https; write https://HOST, such as https://fs1.example.com"}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, &Error{Code: 78, Problem: "the base URL has a user name, a ? or a #; write https://HOST alone, such as https://fs1.example.com"}
	case u.Scheme == "http" && !allowHTTP && !IsLoopback(u.Hostname()):
		return nil, &Error{Code: 78, Problem: fmt.Sprintf("the base URL begins with http, so the API key would go to %s unencrypted; write https, or set allow_http: true if the network is your own", u.Host)}
	}
	if path := u.EscapedPath(); servicePath.MatchString(path) {
		return nil, &Error{Code: 78, Problem: "the base URL has /api in it, which formetl adds itself; write " + u.Scheme + "://" + u.Host + servicePath.ReplaceAllString(path, "")}
	}
	if m := formPath.FindStringSubmatch(u.Path); m != nil {
		return nil, &Error{Code: 78, Problem: fmt.Sprintf("the base URL is the address of a form; write only %s://%s%s; the account is %s, and the form is %s", u.Scheme, u.Host, strings.TrimSuffix(u.Path, m[0]), m[1], m[2])}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// address returns the address of a call, with the API key unless the dialect sends the key in a
// header. The error is an *Error if call.Form cannot be a form's name.
func (s *Sender) address(call Call) (string, error) {
	address := s.forms
	if call.Transaction != GetForms {
		if noSegment(call.Form) {
			return "", &Error{Code: 78, Problem: fmt.Sprintf("%q is not a form; give the form's name, as `formetl forms` lists it", call.Form)}
		}
		address += "/" + Escape(call.Form)
	}
	if call.Path != "" {
		address += "/" + call.Path
	}
	sent := slices.Clone(call.Parameters)
	if s.dialect.KeyParameter != "" {
		sent.Add(s.dialect.KeyParameter, s.cfg.Key.value)
	}
	if len(sent) > 0 {
		address += "?" + sent.Query()
	}
	return address, nil
}

// noSegment tells whether a name, as a segment of a path, would lead an address elsewhere.
func noSegment(name string) bool { return name == "" || name == "." || name == ".." }

// IsLoopback tells whether a host is this machine: localhost, 127.0.0.0/8 or ::1.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Escape percent-encodes every byte but the unreserved characters of RFC 3986
// section 2.3. A space becomes %20, never "+" (specification, section 4).
func Escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// Parameter is one name and value of a request's query. A Bare parameter has no value and no "=".
type Parameter struct {
	Name, Value string
	Bare        bool
}

// Parameters are the parameters of one request, in the order of sending.
type Parameters []Parameter

// Add appends a parameter, unless its value is empty.
func (ps *Parameters) Add(name, value string) {
	if value != "" {
		*ps = append(*ps, Parameter{Name: name, Value: value})
	}
}

// AddNumber appends a parameter, unless its value is 0 or less.
func (ps *Parameters) AddNumber(name string, value int64) {
	if value > 0 {
		ps.Add(name, strconv.FormatInt(value, 10))
	}
}

// Query returns the query of an address. Names and values are percent-encoded throughout,
// a space as %20 (specification, section 4; service-v2.md, sections 1 and 4).
func (ps Parameters) Query() string { return ps.join("&", Escape) }

// String returns the parameters as text for people: name=value, separated by commas.
func (ps Parameters) String() string { return ps.join(", ", strings.Clone) }

func (ps Parameters) join(separator string, spell func(string) string) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = spell(p.Name)
		if !p.Bare {
			parts[i] += "=" + spell(p.Value)
		}
	}
	return strings.Join(parts, separator)
}
