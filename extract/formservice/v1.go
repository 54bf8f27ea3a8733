package formservice

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const keyParameter = "fs_api_key"

// xmlCall is a request of API v1.
type xmlCall struct {
	*call
	w *xmlWriter
}

func (c *xmlCall) contentType() string { return "text/xml; charset=" + c.w.charset() }

// refuse answers an error.
func (c *xmlCall) refuse(no *refusal) outcome {
	c.w.buf = c.w.buf[:0]
	out := outcome{body: c.w.refusal(no), status: no.httpStatus(http.StatusBadRequest, http.StatusServiceUnavailable), code: no.code}
	if no.allow != "" {
		out.header = http.Header{"Allow": {no.allow}}
	}
	return out
}

// answer runs a transaction and writes its envelope.
func (c *xmlCall) answer() (outcome, *refusal) {
	if no := c.check(); no != nil {
		return outcome{}, no
	}
	c.w.open("success")
	n, no := c.run()
	return outcome{body: c.w.close(), status: http.StatusOK, code: -1, results: n}, no
}

// check does what every transaction begins with: account, key, form, method,
// query.
func (c *xmlCall) check() *refusal {
	if c.account != c.server.account() {
		return &refusal{code: codeInvalidUser, message: fmt.Sprintf("there is no account %q", c.account)}
	}
	pairs, wrong := parseQuery(c.http.URL.RawQuery)
	authorised := false
	for _, p := range pairs {
		if p.name == keyParameter {
			authorised = p.value == c.server.key()
			continue
		}
		c.pairs = append(c.pairs, p)
	}
	if !authorised {
		message := "the API key is missing or wrong"
		if wrong != nil {
			message += "; " + wrong.Error()
		}
		return &refusal{code: codeInvalidKey, message: message}
	}
	method := http.MethodGet
	if c.transaction == TransactionCopy {
		method = http.MethodPost
	}
	return c.lawful(method, wrong)
}

// run writes the inside of a success envelope and returns how many results it
// holds.
func (c *xmlCall) run() (results int, no *refusal) {
	switch c.transaction {
	case TransactionForms:
		if no = c.only(); no == nil {
			c.w.raw("<forms>\n")
			for _, f := range c.server.allForms() {
				c.w.form(f)
			}
			c.w.raw("</forms>\n")
		}
	case TransactionCopy:
		no = c.copyForm()
	case TransactionStatus:
		if no = c.only(); no == nil {
			c.w.status(c.form)
		}
	case TransactionPublish:
		if no = c.only("fs_secure"); no == nil {
			_, secure := c.value("fs_secure")
			c.w.publish(c.form, c.account, c.http.Host, secure)
		}
	case TransactionResults, TransactionCount:
		q, no := c.asked()
		if no != nil {
			return 0, no
		}
		c.faults.bend(&q)
		if c.transaction == TransactionResults {
			return c.w.results(c.form, &q, c.faults.text("headings"), c.linked), nil
		}
		c.w.element("count", strconv.Itoa(c.faults.told(c.form.count(&q), c.form)))
		c.w.raw("\n")
	}
	return 0, no
}

// copyForm adds a form like the one addressed, without results. A copy for
// another account is described and then out of reach.
func (c *xmlCall) copyForm() *refusal {
	s := c.server
	if no := c.only("fs_destination_account", "fs_destination_form"); no != nil {
		return no
	}
	account, name := s.account(), c.form.Name
	if v, ok := c.value("fs_destination_account"); ok {
		account = v
	}
	if v, ok := c.value("fs_destination_form"); ok {
		name = v
	}
	own := account == s.account()
	if !own && !slices.Contains(s.Accounts, account) {
		return &refusal{code: codeInvalidUser, message: fmt.Sprintf("there is no account %q to copy to", account)}
	}
	if strings.TrimSpace(name) == "" {
		return refuse(pair{"fs_destination_form", name}, "a name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &Form{
		Clock: c.form.Clock,
		ID:    fmt.Sprint(20_000 + len(s.forms)), Name: name, Description: c.form.Description,
		Items: c.form.Items, Metas: c.form.Metas, Views: c.form.Views, Labels: c.form.Labels, Groups: c.form.Groups,
	}
	made.Directory = s.freeDirectory(name)
	if own {
		s.forms = append(s.forms, made)
	}
	c.w.form(made)
	return nil
}

var notInDirectory = regexp.MustCompile("[^a-z0-9]")

// freeDirectory makes a directory of a name that no form has.
func (s *Server) freeDirectory(name string) string {
	slug := cmp.Or(strings.Trim(notInDirectory.ReplaceAllString(strings.ToLower(name), "_"), "_"), "form")
	directory := slug
	for i := 2; slices.ContainsFunc(s.forms, func(f *Form) bool { return f.Directory == directory }); i++ {
		directory = fmt.Sprintf("%s_%d", slug, i)
	}
	return directory
}
