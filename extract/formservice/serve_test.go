package formservice

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogIsBounded fills the log to its bound.
func TestLogIsBounded(t *testing.T) {
	var s Server
	for n := range 2*leastLogged + 5 {
		s.record(Request{Number: n + 1, Transaction: TransactionResults})
	}
	log := s.Log()
	if len(log) != leastLogged+5 || log[0].Number != leastLogged+1 || log[len(log)-1].Number != 2*leastLogged+5 {
		t.Errorf("%d entries from %d to %d", len(log), log[0].Number, log[len(log)-1].Number)
	}
	if n := s.Counts()[TransactionResults]; n != 2*leastLogged+5 {
		t.Errorf("%d counted", n)
	}
}

// TestLogComesBeforeTheAnswer: whoever has an answer finds it in the log.
func TestLogComesBeforeTheAnswer(t *testing.T) {
	s := &Server{}
	logged := 0
	w := &spy{ResponseRecorder: httptest.NewRecorder(), onHeader: func() { logged = len(s.Log()) }}
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if logged != 1 {
		t.Errorf("%d entries when the answer begins, want 1", logged)
	}
}

// spy tells when an answer begins.
type spy struct {
	*httptest.ResponseRecorder
	onHeader func()
}

func (s *spy) WriteHeader(status int) {
	s.onHeader()
	s.ResponseRecorder.WriteHeader(status)
}

// TestGoneClient checks that nothing waits for a client that has left, and
// that such a request is still counted as ended.
func TestGoneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, faults := range []Faults{"latency=1h", "slow=1,slow-delay=1h"} {
			s := &Server{Forms: []*Form{smallForm()}, Faults: faults}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, resultsPath+"?fs_api_key="+DefaultKey, nil))
			cancel()
			if took := time.Since(began); took != time.Second {
				t.Errorf("%s: %s for a client that left after a second", faults, took)
			}
			if strings.HasSuffix(w.Body.String(), "</fs_response>\n") {
				t.Errorf("%s: the whole answer was sent", faults)
			}
			if s.log.now != 0 {
				t.Errorf("%s: %d requests under way", faults, s.log.now)
			}
		}
	})
}

// TestResetWhileRunning keeps the count of requests under way.
func TestResetWhileRunning(t *testing.T) {
	var s Server
	s.enter(new(Request))
	s.enter(new(Request))
	s.leave()
	s.Reset()
	if s.Peak() != 1 {
		t.Errorf("peak %d, want 1: one request is under way", s.Peak())
	}
	var r Request
	if n := s.enter(&r); n != 2 || r.Number != 1 {
		t.Errorf("%d under way, number %d", n, r.Number)
	}
}

// TestEncodedPaths reads account and form names that need encoding.
func TestEncodedPaths(t *testing.T) {
	for path, want := range map[string]route{
		"/api/users/a%2Fb/forms":                          {V1, "a/b", "", TransactionForms},
		"/api/users/acme/forms/%C3%A9%20x/results":        {V1, "acme", "é x", TransactionResults},
		"/api/users/acme/forms/f/results/count":           {V1, "acme", "f", TransactionCount},
		"/api/users/acme/forms/results/status":            {V1, "acme", "results", TransactionStatus},
		"/api/users/acme/forms/copy/copy":                 {V1, "acme", "copy", TransactionCopy},
		"/api/users/forms/forms/forms/publish":            {V1, "forms", "forms", TransactionPublish},
		"/api/users/acme/forms/..%2F..%2Fetc/results":     {V1, "acme", "../../etc", TransactionResults},
		"/api/users/acme/forms/%2E%2E/results":            {V1, "acme", "..", TransactionResults},
		"/api/users/acme/forms/a%3Fb%23c/results":         {V1, "acme", "a?b#c", TransactionResults},
		"/api/users/acme/forms/very-long_name.1~/publish": {V1, "acme", "very-long_name.1~", TransactionPublish},
	} {
		if got, ok := new(Server).parsePath(path); !ok || got != want {
			t.Errorf("%s: %+v, %t; want %+v", path, got, ok, want)
		}
	}
	if got, ok := new(Server).parsePath("/api/users/acme/forms/form1/results%2Fcount"); ok {
		t.Errorf("an encoded slash divides: %+v", got)
	}
}

// TestCopyDirectories makes directories of names.
func TestCopyDirectories(t *testing.T) {
	s := &Server{forms: []*Form{{Directory: "form"}, {Directory: "form_2"}}}
	for name, want := range map[string]string{
		"A Form!": "a_form", "form": "form_3", "日本": "form_3", "../x": "x", "a/b": "a_b", "  ": "form_3",
	} {
		if got := s.freeDirectory(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
