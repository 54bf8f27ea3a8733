package main

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// weather is what a process meets at the service.
type weather struct {
	seed     uint64
	storm    float64 // share of requests that go wrong
	empty    float64 // share that get an empty body, or a page for people, with HTTP 200
	outage   formservice.Fault
	outageAt int              // the request that it begins at, 0 for none
	before   map[int][]func() // what happens when so many requests have come, before that one is answered
	after    map[int][]func() // the same after it
	always   func()           // what happens before every request, nil for nothing
}

// service is the form service of a life, over real HTTP.
type service struct {
	form *formservice.Server
	URL  string
	http *httptest.Server

	underWay underWay
	passes   func() // lets a second pass, nil for nothing

	mu      sync.Mutex
	weather weather
	arrived int
	told    bool // the last request asked what changed
}

func startService(key string, form *formservice.Form, zone *time.Location, faults formservice.Faults) *service {
	s := &service{form: &formservice.Server{Key: key, Forms: []*formservice.Form{form}, Faults: faults, API: formservice.Both, Zone: zone}}
	s.form.Decide = s.decide
	s.http = httptest.NewUnstartedServer(s)
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are cut on purpose
	s.http.Start()
	s.URL = s.http.URL
	return s
}

// expect begins to treat requests as a process is to find them.
func (s *service) expect(w weather) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.form.Reset()
	s.weather, s.arrived = w, 0
}

// log tells of the requests since expect, for people.
func (s *service) log() string {
	var b strings.Builder
	for _, q := range s.form.Log() {
		fmt.Fprintf(&b, "%d. %s %s: %d, %d results %s\n", q.Number, q.Transaction, q.Query, q.Status, q.Results, q.Fault)
	}
	return b.String()
}

// settle waits for what is under way, and ends the weather.
func (s *service) settle() (requests int) {
	s.underWay.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weather = weather{}
	return s.arrived
}

// ServeHTTP answers a request, or does not.
func (s *service) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.underWay.begin()
	defer s.underWay.end()
	s.mu.Lock()
	s.arrived++
	n, sky := s.arrived, s.weather
	feed, told := strings.Contains(q.URL.RawQuery, "date_update"), s.told
	s.told = feed
	s.mu.Unlock()
	if sky.always != nil {
		sky.always()
	}
	for _, act := range sky.before[n] {
		act()
	}
	if told && !feed && s.passes != nil {
		s.passes() // as a run that was told of a change waits before it reads
	}
	if random := source(sky.seed, uint64(n)); random.Float64() < sky.empty { //nolint:gosec // counted from 1
		w.Header().Set("Content-Type", "text/html")
		body := pick(random, "", "<html><body>Please log in.<br></body></html>")
		_, _ = io.Copy(w, strings.NewReader(body)) // a client that went away is its own matter
	} else {
		s.form.ServeHTTP(w, q)
	}
	for _, act := range sky.after[n] {
		_ = http.NewResponseController(w).Flush()
		act()
	}
}

// decide lets the service fail as the weather has it.
func (s *service) decide(q formservice.Request) formservice.Fault {
	s.mu.Lock()
	sky, n := s.weather, s.arrived
	s.mu.Unlock()
	if sky.outageAt > 0 && n >= sky.outageAt {
		return sky.outage
	}
	random := source(sky.seed, 1<<32+uint64(q.Number)) //nolint:gosec // counted from 1
	if random.Float64() >= sky.storm {
		return formservice.NoFault
	}
	return pick(random, formservice.FaultBusy, formservice.FaultBusy, formservice.FaultHTML, formservice.FaultCut,
		formservice.FaultTruncate, formservice.FaultReset, formservice.FaultSlow)
}

// source is a source of chance, equal for equal numbers.
func source(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // nobody must be surprised
}
