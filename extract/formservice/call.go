package formservice

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is what a path asks for.
type route struct {
	api, account, form, transaction string

	file string // the name of an uploaded file
}

// The transactions, as Request.Transaction names them.
const (
	TransactionForms   = "forms"
	TransactionCopy    = "copy"
	TransactionStatus  = "status"
	TransactionPublish = "publish"
	TransactionResults = "results"
	TransactionCount   = "results/count"

	// Of API v2 alone, which also has TransactionForms and TransactionResults.
	TransactionForm  = "form"
	TransactionItems = "items"

	// Of no API: an uploaded file.
	TransactionFile = "File"
)

const (
	prefixOfV1 = "/api/users/"
	prefixOfV2 = "/api/v2/"
)

// parsePath reads a path of the generations that are served. ok is false where
// it is none of theirs.
func (s *Server) parsePath(escaped string) (rt route, ok bool) {
	if m := filePath.FindStringSubmatch(escaped); m != nil && s.Files {
		account, _ := url.PathUnescape(m[1]) // a path that was parsed is well-encoded
		file, _ := url.PathUnescape(m[2])
		return route{account: account, file: file, transaction: TransactionFile}, true
	}
	if s.API == V2 || s.API == Both && strings.HasPrefix(escaped, prefixOfV2) {
		rt, ok = parsePath(escaped, prefixOfV2, "", TransactionItems, TransactionResults)
		rt.api = V2
		if ok && rt.transaction == "" {
			rt.transaction = TransactionForm
		}
		return rt, ok
	}
	rt, ok = parsePath(escaped, prefixOfV1, TransactionCopy, TransactionStatus, TransactionPublish, TransactionResults, TransactionCount)
	rt.api = V1
	return rt, ok
}

// parsePath reads the prefix and <account>/forms[/<form>/<transaction>].
func parsePath(escaped, prefix string, known ...string) (route, bool) {
	rest, ok := strings.CutPrefix(escaped, prefix)
	if !ok {
		return route{}, false
	}
	parts := strings.Split(rest, "/")
	transaction := strings.Join(parts[min(3, len(parts)):], "/") // as it stands: an encoded slash is none
	for i := range parts {
		p, err := url.PathUnescape(parts[i])
		if err != nil || p == "" {
			return route{}, false
		}
		parts[i] = p
	}
	if len(parts) < 2 || parts[1] != "forms" {
		return route{}, false
	}
	if len(parts) == 2 {
		return route{account: parts[0], transaction: TransactionForms}, true
	}
	if !slices.Contains(known, transaction) {
		return route{}, false
	}
	return route{account: parts[0], form: parts[2], transaction: transaction}, true
}

// call is one request on its way through the service.
type call struct {
	server *Server
	http   *http.Request
	route
	faults *faults
	form   *Form  // nil: there is none of that name
	pairs  []pair // the parameters, but for the key
}

// generation is how one of the two answers a request.
type generation interface {
	answer() (outcome, *refusal)
	refuse(*refusal) outcome
	contentType() string
}

// The error codes of the specification, section 7.
const (
	codeInvalidURL   = 1
	codeInvalidValue = 2
	codeBusy         = 3
	codeInvalidKey   = 100
	codeInvalidUser  = 101
	codeInvalidForm  = 102
	codeInvalidID    = 103
)

// refusal is an error to be answered.
type refusal struct {
	code    int
	status  int // HTTP status, 0: by the code
	message string
	allow   string // the method that there is, where that is the error
}

// httpStatus is the HTTP status of the error. For wrong values and busy answers the
// generations have one of their own.
func (r *refusal) httpStatus(invalid, busy int) int {
	usual := map[int]int{codeInvalidValue: invalid, codeInvalidID: invalid, codeBusy: busy, codeInvalidKey: http.StatusUnauthorized}
	return cmp.Or(r.status, usual[r.code], http.StatusNotFound)
}

// refuse is a bad value of a parameter.
func refuse(p pair, want string) *refusal {
	return &refusal{code: codeInvalidValue, message: fmt.Sprintf("%s: %q is not %s", p.name, p.value, want)}
}

// unknown refuses a parameter that there is not.
func (c *call) unknown(p pair) *refusal {
	return &refusal{code: codeInvalidValue, message: p.name + " is not a parameter of this transaction"}
}

// lawful refuses a form that there is not, another method than that of the transaction, and
// a query that was read with an error.
func (c *call) lawful(method string, wrong error) *refusal {
	switch {
	case c.route.form != "" && c.form == nil:
		return &refusal{code: codeInvalidForm, message: fmt.Sprintf("there is no form %q", c.route.form)}
	case c.http.Method != method:
		message := fmt.Sprintf("%s takes %s, not %s", c.transaction, method, c.http.Method)
		return &refusal{code: codeInvalidURL, status: http.StatusMethodNotAllowed, message: message, allow: method}
	case wrong != nil:
		return &refusal{code: codeInvalidValue, message: wrong.Error()}
	}
	return nil
}

// only refuses parameters other than those named.
func (c *call) only(names ...string) *refusal {
	for _, p := range c.pairs {
		if !slices.Contains(names, p.name) {
			return c.unknown(p)
		}
	}
	return nil
}

// value returns a parameter's value and whether it was given.
func (c *call) value(name string) (string, bool) {
	for _, p := range c.pairs {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}
