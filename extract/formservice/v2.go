package formservice

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// jsonCall is a request of API v2.
type jsonCall struct {
	*call
	w     *jsonWriter
	clock clock
}

func (c *jsonCall) contentType() string { return "application/json" }

// errorsOfV2 is how messages begin, by their status.
var errorsOfV2 = map[int]string{
	http.StatusUnauthorized: "Authentication info is missing or invalid: ", http.StatusForbidden: "Forbidden: ",
	http.StatusNotFound: "Path or object not found: ", http.StatusUnprocessableEntity: "Invalid parameter: ",
	http.StatusTooManyRequests: "Too many requests or too busy: ",
}

// refuse answers an error.
func (c *jsonCall) refuse(no *refusal) outcome {
	status := no.httpStatus(http.StatusUnprocessableEntity, http.StatusTooManyRequests)
	told := status
	if told < http.StatusBadRequest { // the body tells what the status does not
		told = http.StatusTooManyRequests
	}
	out := outcome{status: status, code: told, header: http.Header{}}
	if status == http.StatusUnauthorized {
		out.header.Set("WWW-Authenticate", "Bearer")
	}
	if no.allow != "" {
		out.header.Set("Allow", no.allow)
	}
	w := c.w
	w.buf = w.buf[:0]
	w.open('{')
	w.key("error")
	w.open('{')
	w.member("message", errorsOfV2[told]+no.message)
	w.numberMember("status", int64(told))
	w.close('}')
	w.close('}')
	w.buf = append(w.buf, '\n')
	out.body = w.buf
	return out
}

// answer runs the request.
func (c *jsonCall) answer() (outcome, *refusal) {
	out := outcome{status: http.StatusOK, code: -1, header: http.Header{}}
	if no := c.check(); no != nil {
		return out, no
	}
	c.w.open('{')
	var no *refusal
	switch c.transaction {
	case TransactionForms:
		no = c.listForms()
	case TransactionForm:
		no = c.getForm()
	case TransactionItems:
		no = c.getItems()
	case TransactionResults:
		no = c.getResults(&out)
	}
	c.w.close('}')
	c.w.buf = append(c.w.buf, '\n')
	out.body = c.w.buf
	return out, no
}

// check does what every request begins with: token, account, form, method,
// query.
func (c *jsonCall) check() *refusal {
	raw := c.http.URL.RawQuery
	var wrong error
	c.pairs, wrong = parseQuery(strings.ReplaceAll(raw, "+", "%20"))
	if !c.authorised() || without(raw, c.server.isToken) != without(raw, func(pair) bool { return false }) {
		return &refusal{code: codeInvalidKey, message: "send the header Authorization: bearer TOKEN and no token in the URL"}
	}
	if c.account != c.server.account() {
		no := &refusal{code: codeInvalidUser, message: fmt.Sprintf("account %q", c.account)}
		if slices.Contains(c.server.Accounts, c.account) {
			no.status = http.StatusForbidden
		}
		return no
	}
	return c.lawful(http.MethodGet, wrong)
}

// authorised tells whether the one Authorization header holds the token.
func (c *jsonCall) authorised() bool {
	headers := c.http.Header.Values("Authorization")
	if len(headers) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	return strings.EqualFold(scheme, "bearer") && strings.TrimLeft(token, " ") == c.server.key()
}

// isToken tells whether a parameter is, or looks like, a token in the URL.
func (s *Server) isToken(p pair) bool {
	names := []string{"token", "access_token", "bearer", "bearer_token", "api_key", "fs_api_key", "authorization"}
	return slices.Contains(names, strings.ToLower(p.name)) || p.value == s.key()
}

func (c *jsonCall) listForms() *refusal {
	if no := c.only(); no != nil {
		return no
	}
	c.w.key("forms")
	c.w.open('[')
	for _, f := range c.server.allForms() {
		f.mu.RLock()
		c.describe(f)
		f.mu.RUnlock()
	}
	c.w.close(']')
	return nil
}

func (c *jsonCall) getForm() *refusal {
	if no := c.only(); no != nil {
		return no
	}
	if c.faults.on("v2-bare-form") {
		c.w.buf = c.w.buf[:0]
		c.describe(c.form)
		c.w.buf = c.w.buf[:len(c.w.buf)-1] // answer closes the object
		return nil
	}
	c.w.key("forms")
	c.w.open('[')
	c.describe(c.form)
	c.w.close(']')
	return nil
}

func (c *jsonCall) getItems() *refusal {
	if no := c.only("results_labels"); no != nil {
		return no
	}
	var labels map[string]string
	if v, given := c.value("results_labels"); given {
		var ok bool
		if labels, ok = c.form.Labels[v]; !ok {
			return refuse(pair{"results_labels", v}, "a set of labels of this form")
		}
	}
	c.listItems(labels)
	return nil
}

func (c *jsonCall) getResults(out *outcome) *refusal {
	q, no := c.asked()
	if no != nil {
		return no
	}
	c.faults.bend(&q)
	a := &answers{jsonCall: c, all: newQuestions(c.form, c.faults.on("v2-own-positions")), columns: q.view.Columns}
	c.w.key("results")
	c.w.open('[')
	c.form.pick(&q, func(r Result) {
		a.result(c.linked(r))
		out.results++
	})
	c.w.close(']')
	c.paginate(out.header, &q)
	return nil
}

// paginate sets the headers that tell of the pages.
func (c *jsonCall) paginate(h http.Header, q *resultsQuery) {
	last := (c.faults.told(c.form.count(q), c.form) + q.limit - 1) / q.limit
	switch c.faults.text("v2-pagination") {
	case "missing":
		return
	case "zero":
		last = 0
	case "more":
		last++
	case "less":
		last = max(0, last-1)
	}
	h.Set("Pagination-Page-Last", strconv.Itoa(last))
	h.Set("Pagination-Page-Current", strconv.Itoa(q.page))
	h.Set("Pagination-Limit", strconv.Itoa(q.limit))
}
