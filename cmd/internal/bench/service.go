package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// end is the end of all results that the service has.
const end = "2026-01-01"

// service is a running test service. An answer to a request for results is made once and kept.
type service struct {
	*httptest.Server
	form    http.Handler
	latency time.Duration

	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder
	asked   []string // addresses of the answers, in the order of the first requests
}

func (s *settings) startService() *service {
	form := formservice.Generate(formservice.GenerateOptions{
		Results: s.results, Items: s.items, Even: true, NoUnfinished: true, NoUndated: true, NoLate: true, NoHostile: true,
	})
	made := &service{
		form:    &formservice.Server{Forms: []*formservice.Form{form}, Faults: "no-gzip"},
		latency: s.latency, answers: map[string]*httptest.ResponseRecorder{},
	}
	made.Server = httptest.NewServer(made)
	return made
}

// ServeHTTP answers a request.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	answer := s.answer(r)
	select {
	case <-time.After(s.latency - time.Since(began)):
	case <-r.Context().Done():
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client notices
}

// answer returns the answer to a request. Results before the end of all results are
// all results, so a later bound does not make an answer another one.
func (s *service) answer(r *http.Request) *httptest.ResponseRecorder {
	q := r.URL.Query()
	if q.Get("fs_max_date") > end {
		q.Del("fs_max_date")
	}
	name := r.Header.Get("Accept-Encoding") + " " + r.URL.Path + "?" + q.Encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.answers[name]; a != nil {
		return a
	}
	s.mu.Unlock()
	a := httptest.NewRecorder()
	s.form.ServeHTTP(a, r)
	s.mu.Lock()
	s.answers[name] = a
	if strings.HasSuffix(r.URL.Path, "/"+formservice.TransactionResults) {
		s.asked = append(s.asked, r.URL.RequestURI())
	}
	return a
}

// pages returns the addresses of the pages that formetl has asked for.
func (s *service) pages() (pages []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, address := range s.asked {
		u, err := url.Parse(s.URL + address)
		if err != nil {
			return nil, err
		}
		if !u.Query().Has("fs_sort") { // else it asks what changed
			pages = append(pages, u.String())
		}
	}
	return pages, nil
}
