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
	s.prepare()
	s.enter(new(Request))
	s.enter(new(Request))
	s.leave()
	s.Reset()
	if s.Peak() != 1 {
		t.Errorf("peak %d, want 1: one request is under way", s.Peak())
	}
	var r Request
	if s.enter(&r); s.Peak() != 2 || r.Number != 1 {
		t.Errorf("%d under way, number %d", s.Peak(), r.Number)
	}
}
