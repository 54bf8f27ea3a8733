package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
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
	maps.Copy(w.Header(), answer.Header())
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
	return a
}
