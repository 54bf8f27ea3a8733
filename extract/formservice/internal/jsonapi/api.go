package jsonapi

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract/formservice/internal/query"
)

// The kinds of requests.
const (
	Forms   = "forms"
	GetForm = "form"
	Items   = "items"
	Results = "results"
)

// Prefix begins every path of this generation.
const Prefix = "/api/v2/"

// Route is what a path asks for.
type Route struct{ Account, Form, Kind string }

// ParsePath reads /api/v2/<account>/forms[/<form>[/<kind>]].
func ParsePath(escaped string) (Route, error) {
	bad := &Refusal{Status: http.StatusNotFound, Message: "Path or object not found: the path is not " + Prefix + "<account>/forms[/<form>[/items|results]]"}
	rest, ok := strings.CutPrefix(escaped, Prefix)
	if !ok {
		return Route{}, bad
	}
	parts := strings.Split(rest, "/")
	for i := range parts {
		p, err := url.PathUnescape(parts[i])
		if err != nil || p == "" || i == 3 && p != parts[i] {
			return Route{}, bad
		}
		parts[i] = p
	}
	if len(parts) < 2 || parts[1] != "forms" {
		return Route{}, bad
	}
	switch {
	case len(parts) == 2:
		return Route{parts[0], "", Forms}, nil
	case len(parts) == 3:
		return Route{parts[0], parts[2], GetForm}, nil
	case len(parts) == 4 && slices.Contains([]string{Items, Results}, parts[3]):
		return Route{parts[0], parts[2], parts[3]}, nil
	}
	return Route{}, bad
}

// Service is the account that is asked, and how it answers.
type Service struct {
	Account  string
	Others   []string // accounts that there are, but not for this token
	Token    string
	Loose    bool
	MaxLimit int
	Clock    Clock
	Variants
	Forms func() []*Form
}

// MaxLimitOf is the most results on a page; strict is one less.
func MaxLimitOf(strict bool) int {
	if strict {
		return maxLimit - 1
	}
	return maxLimit
}

// Reply is an answer; its body is the writer's buffer.
type Reply struct {
	Status  int
	Results int // that the body holds
	Header  http.Header
}

// Answer answers a request. form is the form that the route names, nil if
// there is none.
func (s *Service) Answer(r *http.Request, rt Route, routeErr error, form *Form, w *Writer) Reply {
	reply := Reply{Status: http.StatusOK, Header: http.Header{}}
	err := routeErr
	if err == nil {
		err = s.run(r, rt, form, w, &reply)
	}
	if err != nil {
		return Refuse(err, w)
	}
	return reply
}

// Refuse writes the answer of an error.
func Refuse(err error, w *Writer) Reply {
	var no *Refusal
	if !errors.As(err, &no) {
		no = &Refusal{Status: http.StatusInternalServerError, Message: "Unexpected internal error: " + err.Error()}
	}
	reply := Reply{Status: no.Status, Header: http.Header{}}
	if no.Status == http.StatusUnauthorized {
		reply.Header.Set("WWW-Authenticate", "Bearer")
	}
	if no.Allow != "" {
		reply.Header.Set("Allow", no.Allow)
	}
	w.Buf, w.spell = w.Buf[:0], shortly
	w.open('{')
	w.key("error")
	w.open('{')
	w.member("message", no.Message)
	w.numberMember("status", int64(no.Status))
	w.close('}')
	w.close('}')
	w.finish()
	return reply
}

// run writes the body of an answer, or gives the error to answer.
func (s *Service) run(r *http.Request, rt Route, form *Form, w *Writer, reply *Reply) error {
	pairs, err := s.check(r, rt, form)
	if err != nil {
		return err
	}
	w.open('{')
	switch rt.Kind {
	case Forms:
		err = s.listForms(w, r.Host, pairs)
	case GetForm:
		err = s.getForm(w, r.Host, pairs, form)
	case Items:
		err = s.getItems(w, pairs, form)
	case Results:
		err = s.getResults(w, pairs, form, reply)
	}
	w.close('}')
	w.finish()
	return err
}

// check does what every request begins with: token, account, form, method,
// query.
func (s *Service) check(r *http.Request, rt Route, form *Form) ([]query.Pair, error) {
	pairs, queryErr := query.Parse(strings.ReplaceAll(r.URL.RawQuery, "+", "%20"), s.Loose)
	if !s.authorised(r) || query.Without(r.URL.RawQuery, s.Secret) != query.Without(r.URL.RawQuery, none) {
		return nil, &Refusal{
			Status:  http.StatusUnauthorized,
			Message: "Authentication info is missing or invalid; send the header Authorization: bearer TOKEN and no token in the URL",
		}
	}
	if rt.Account != s.Account {
		if slices.Contains(s.Others, rt.Account) {
			return nil, &Refusal{Status: http.StatusForbidden, Message: "Forbidden"}
		}
		return nil, &Refusal{Status: http.StatusNotFound, Message: "Path or object not found: account " + strconv.Quote(rt.Account)}
	}
	if rt.Kind != Forms && form == nil {
		return nil, &Refusal{Status: http.StatusNotFound, Message: "Path or object not found: form " + strconv.Quote(rt.Form)}
	}
	if r.Method != http.MethodGet {
		return nil, &Refusal{Status: http.StatusMethodNotAllowed, Message: r.Method + " is not allowed here, but GET", Allow: http.MethodGet}
	}
	if queryErr != nil {
		return nil, invalid("%s", queryErr)
	}
	return pairs, nil
}

// authorised tells whether the one Authorization header holds the token.
func (s *Service) authorised(r *http.Request) bool {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	return strings.EqualFold(scheme, "bearer") && strings.TrimLeft(token, " ") == s.Token
}

// Secret tells whether a parameter is, or looks like, a token in the URL.
func (s *Service) Secret(p query.Pair) bool {
	names := []string{"token", "access_token", "bearer", "bearer_token", "api_key", "fs_api_key", "authorization"}
	return slices.Contains(names, strings.ToLower(p.Name)) || p.Value == s.Token
}

func none(query.Pair) bool { return false }

func (s *Service) listForms(w *Writer, host string, pairs []query.Pair) error {
	if err := s.only(pairs); err != nil {
		return err
	}
	w.key("forms")
	w.open('[')
	for _, f := range s.Forms() {
		s.form(w, f, host)
	}
	w.close(']')
	return nil
}

func (s *Service) getForm(w *Writer, host string, pairs []query.Pair, form *Form) error {
	if err := s.only(pairs); err != nil {
		return err
	}
	if s.BareForm {
		w.Buf = w.Buf[:0]
		s.form(w, form, host)
		w.Buf = w.Buf[:len(w.Buf)-1] // run closes the object
		return nil
	}
	w.key("forms")
	w.open('[')
	s.form(w, form, host)
	w.close(']')
	return nil
}

func (s *Service) getItems(w *Writer, pairs []query.Pair, form *Form) error {
	var labels map[string]string
	if err := s.only(pairs, "results_labels"); err != nil {
		return err
	}
	for _, p := range pairs {
		if p.Name == "results_labels" {
			var ok bool
			if labels, ok = form.Labels[p.Value]; !ok {
				return refuse(p, "a set of labels of this form")
			}
		}
	}
	s.items(w, form, labels)
	return nil
}

func (s *Service) getResults(w *Writer, pairs []query.Pair, form *Form, reply *Reply) error {
	sel, err := s.selection(pairs, form)
	if err != nil {
		return err
	}
	page := form.Read(sel)
	a := s.newAnswers(w, form, sel.columns)
	w.key("results")
	w.open('[')
	page.Each(func(r Result) {
		a.result(r)
		reply.Results++
	})
	w.close(']')
	s.paginate(reply.Header, page)
	return nil
}

// paginate sets the headers that tell of the pages.
func (s *Service) paginate(h http.Header, p Page) {
	last := (p.Total + p.Limit - 1) / p.Limit
	switch s.Pagination {
	case PaginationMissing:
		return
	case PaginationZero:
		last = 0
	case PaginationMore:
		last++
	case PaginationLess:
		last = max(0, last-1)
	}
	h.Set("Pagination-Page-Last", strconv.Itoa(last))
	h.Set("Pagination-Page-Current", strconv.Itoa(p.Number))
	h.Set("Pagination-Limit", strconv.Itoa(p.Limit))
}
