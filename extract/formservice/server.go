package formservice

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formetl/formetl/extract/formservice/internal/jsonapi"
	"github.com/formetl/formetl/extract/formservice/internal/query"
)

// What a Server has where nothing else is said.
const (
	DefaultAccount = "acme"
	DefaultKey     = "formservice-test-key" // opens nothing but test services
)

// The generations of the interface, for Server.API.
const (
	V1   = "v1"   // XML, below /api/users/
	V2   = "v2"   // JSON, below /api/v2/
	Both = "both" // each below its path
)

// Server answers the six transactions of the specification, and those of API
// v2 from the same forms. The zero value serves the account "acme" with the key DefaultKey and one generated form,
// "form1", of 1,000 results. Fields must be set before the first request; it
// is safe for concurrent use.
type Server struct {
	Account  string   // "": DefaultAccount
	Key      string   // "": DefaultKey
	Accounts []string // further accounts, which copies may go to; nobody can log in to them
	Forms    []*Form  // nil: the sample form; empty: none
	Faults   Faults   // at the start; see SetFaults
	Loose    bool     // take "+" of API v1 as itself and unknown parameters as nothing
	API      string   // V1, V2 or Both; "": V1

	// Zone is the account's zone, by which API v2 tells UTC; nil: UTC.
	Zone *time.Location

	// Before is called before each request is answered, with what is known of
	// it then; it may change forms and faults. nil: nothing is called. It is the
	// place to change results at a moment that a test chooses. Before the sixth
	// request, say, thirty results are deleted by
	//
	//	Before: func(r Request) {
	//		if r.Number == 6 {
	//			for id := int64(1); id <= 30; id++ {
	//				form.Delete(id)
	//			}
	//		}
	//	}
	//
	// Request.Nth counts the requests of the same transaction instead: the k-th
	// page of API v1 is TransactionResults with Nth k. API v2 has no
	// TransactionCount; its counts are pages with limit=1 in Query. Form.Finish
	// moves a result to another day, and Form.Submit adds one there. Requests that are under way at once call Before
	// at once; a Before that waits holds its own request back alone.
	Before func(Request)
	// Decide, where it is set, decides on a request's fault instead of the
	// rates of Faults.
	Decide func(Request) Fault
	// Now is the clock of Faults.PerMinute and of the log; nil: time.Now.
	Now func() time.Time

	start sync.Once
	reuse reuse

	mu     sync.Mutex
	faults Faults
	forms  []*Form
	log    journal
}

// reuse holds what one answer leaves for the next.
type reuse struct {
	buffers sync.Pool // *[]byte
	gzips   sync.Pool // *gzip.Writer
}

// prepare takes over the fields, once.
func (s *Server) prepare() {
	s.start.Do(func() {
		s.faults = s.Faults
		s.faults.repeated = new(atomic.Bool)
		s.forms = slices.Clone(s.Forms)
		if s.Forms == nil {
			s.forms = []*Form{Generate(GenerateOptions{Results: 1000})}
		}
		setClocks(s.forms, s.faults)
	})
}

// SetFaults changes the faults of the requests to come.
func (s *Server) SetFaults(f Faults) {
	s.prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	s.faults.repeated = new(atomic.Bool)
	setClocks(s.forms, s.faults)
}

// setClocks tells forms by how much their clocks are off.
func setClocks(forms []*Form, faults Faults) {
	for _, f := range forms {
		f.stored.clockOff.Store(int64(faults.ClockOff))
	}
}

// Form returns the form of a directory, nil if there is none. Copies are found
// too.
func (s *Server) Form(directory string) *Form {
	s.prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.forms {
		if f.Directory == directory {
			return f
		}
	}
	return nil
}

// SetForms changes the forms that there are, for the requests to come. Those
// that stay keep their results.
func (s *Server) SetForms(forms ...*Form) {
	s.prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forms = slices.Clone(forms)
	setClocks(s.forms, s.faults)
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Server) account() string {
	if s.Account == "" {
		return DefaultAccount
	}
	return s.Account
}

func (s *Server) key() string {
	if s.Key == "" {
		return DefaultKey
	}
	return s.Key
}

// route is what a path asks for.
type route struct {
	api, account, form, transaction string
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
	TransactionForm  = jsonapi.GetForm
	TransactionItems = jsonapi.Items
)

// parsePath reads a path of the generations that are served.
func (s *Server) parsePath(escaped string) (route, error) {
	if s.API == V2 || s.API == Both && strings.HasPrefix(escaped, jsonapi.Prefix) {
		rt, err := jsonapi.ParsePath(escaped)
		return route{V2, rt.Account, rt.Form, rt.Kind}, err
	}
	rt, err := parsePath(escaped)
	rt.api = V1
	return rt, err
}

// parsePath reads /api/users/<account>/forms[/<form>/<transaction>].
func parsePath(escaped string) (route, error) {
	bad := &refusal{code: codeInvalidURL, message: "the path is not /api/users/<account>/forms[/<form>/<transaction>]"}
	rest, ok := strings.CutPrefix(escaped, "/api/users/")
	if !ok {
		return route{}, bad
	}
	parts := strings.Split(rest, "/")
	transaction := strings.Join(parts[min(3, len(parts)):], "/") // as it stands: an encoded slash is none
	for i := range parts {
		p, err := url.PathUnescape(parts[i])
		if err != nil || p == "" {
			return route{}, bad
		}
		parts[i] = p
	}
	if len(parts) < 2 || parts[1] != "forms" {
		return route{}, bad
	}
	if len(parts) == 2 {
		return route{V1, parts[0], "", TransactionForms}, nil
	}
	known := []string{TransactionCopy, TransactionStatus, TransactionPublish, TransactionResults, TransactionCount}
	if !slices.Contains(known, transaction) {
		return route{}, bad
	}
	return route{V1, parts[0], parts[2], transaction}, nil
}

// call is one request on its way through the service.
type call struct {
	route
	http   *http.Request
	faults Faults
	pairs  []query.Pair
	form   *Form
}

// check does what every transaction begins with: account, key, form, method,
// query.
func (s *Server) check(r *http.Request, rt route, faults Faults) (*call, error) {
	if rt.account != s.account() {
		return nil, &refusal{code: codeInvalidUser, message: fmt.Sprintf("there is no account %q", rt.account)}
	}
	pairs, queryErr := query.Parse(r.URL.RawQuery, s.Loose)
	c := &call{route: rt, http: r, faults: faults}
	authorised := false
	for _, p := range pairs {
		if p.Name == keyParameter {
			authorised = p.Value == s.key()
			continue
		}
		c.pairs = append(c.pairs, p)
	}
	if !authorised {
		message := "the API key is missing or wrong"
		if queryErr != nil {
			message += "; " + queryErr.Error()
		}
		return nil, &refusal{code: codeInvalidKey, message: message}
	}
	if rt.form != "" {
		if c.form = s.Form(rt.form); c.form == nil {
			return nil, &refusal{code: codeInvalidForm, message: fmt.Sprintf("there is no form %q", rt.form)}
		}
	}
	method := http.MethodGet
	if rt.transaction == TransactionCopy {
		method = http.MethodPost
	}
	if r.Method != method {
		return nil, &refusal{
			code: codeInvalidURL, status: http.StatusMethodNotAllowed, allow: method,
			message: fmt.Sprintf("%s takes %s, not %s", rt.transaction, method, r.Method),
		}
	}
	if queryErr != nil {
		return nil, &refusal{code: codeInvalidValue, message: queryErr.Error()}
	}
	return c, nil
}

// answer runs a transaction and writes its envelope into w.
func (s *Server) answer(r *http.Request, rt route, routeErr error, faults Faults, w *writer) outcome {
	err := routeErr
	var c *call
	if err == nil {
		c, err = s.check(r, rt, faults)
	}
	n := 0
	if err == nil {
		w.Open("success")
		n, err = s.run(c, w)
	}
	if err != nil {
		var no *refusal
		if !errors.As(err, &no) {
			no = &refusal{message: err.Error()}
		}
		w.Buf = w.Buf[:0]
		out := outcome{body: w.refusal(no), status: no.httpStatus(), code: no.code}
		if no.allow != "" {
			out.header = http.Header{"Allow": {no.allow}}
		}
		return out
	}
	return outcome{body: w.Close(), status: http.StatusOK, code: -1, results: n}
}

// run writes the inside of a success envelope and returns how many results it
// holds.
func (s *Server) run(c *call, w *writer) (int, error) {
	switch c.transaction {
	case TransactionForms:
		return 0, s.listForms(c, w)
	case TransactionCopy:
		return 0, s.copyForm(c, w)
	}
	c.form.mu.RLock()
	defer c.form.mu.RUnlock()
	switch c.transaction {
	case TransactionStatus:
		if err := s.only(c); err != nil {
			return 0, err
		}
		w.status(c.form)
	case TransactionPublish:
		if err := s.only(c, "fs_secure"); err != nil {
			return 0, err
		}
		_, secure := c.value("fs_secure")
		w.publish(c.form, c.account, c.http.Host, secure)
	case TransactionResults:
		q, err := c.form.results(c.pairs, c.faults, s.Loose)
		if err != nil {
			return 0, err
		}
		c.faults.bend(&q)
		return w.results(c.form, &q, c.faults.Headings), nil
	case TransactionCount:
		q, err := c.form.counted(c.pairs, c.faults, s.Loose)
		if err != nil {
			return 0, err
		}
		c.faults.bend(&q)
		w.Number("count", c.faults.told(c.form.count(&q), c.form))
		w.Raw("\n")
	}
	return 0, nil
}

// only refuses parameters other than those named.
func (s *Server) only(c *call, names ...string) error {
	for _, p := range c.pairs {
		if !s.Loose && !slices.Contains(names, p.Name) {
			return unknown(p)
		}
	}
	return nil
}

// value returns a parameter's value and whether it was given.
func (c *call) value(name string) (string, bool) {
	for _, p := range c.pairs {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

func (s *Server) listForms(c *call, w *writer) error {
	if err := s.only(c); err != nil {
		return err
	}
	s.mu.Lock()
	forms := slices.Clone(s.forms)
	s.mu.Unlock()
	w.Raw("<forms>\n")
	for _, f := range forms {
		w.form(f)
	}
	w.Raw("</forms>\n")
	return nil
}

// copyForm adds a form like the one addressed, without results. A copy for
// another account is described and then out of reach.
func (s *Server) copyForm(c *call, w *writer) error {
	if err := s.only(c, "fs_destination_account", "fs_destination_form"); err != nil {
		return err
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
		return refuse(query.Pair{Name: "fs_destination_form", Value: name}, "a name")
	}
	c.form.mu.RLock()
	clock := c.form.Clock
	c.form.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &Form{
		Clock: clock,
		ID:    fmt.Sprint(20_000 + len(s.forms)), Name: name, Description: c.form.Description,
		Items: c.form.Items, Metas: c.form.Metas, Views: c.form.Views, Labels: c.form.Labels, Groups: c.form.Groups,
	}
	made.Directory = s.freeDirectory(name, own)
	if own {
		s.forms = append(s.forms, made)
		setClocks(s.forms, s.faults)
	}
	w.form(made)
	return nil
}

// freeDirectory makes a directory of a name that no form of the account has.
func (s *Server) freeDirectory(name string, own bool) string {
	slug := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, name), "_")
	if slug == "" {
		slug = "form"
	}
	taken := func(d string) bool {
		return own && slices.ContainsFunc(s.forms, func(f *Form) bool { return f.Directory == d })
	}
	directory := slug
	for i := 2; taken(directory); i++ {
		directory = fmt.Sprintf("%s_%d", slug, i)
	}
	return directory
}
