package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// clock is the service's, which stamps every change of a result. It may differ
// from the account's by hours, and it may jump, as the program allows. Two changes may
// share a second.
type clock struct {
	zone  *time.Location
	off   time.Duration // how far it is from the account's clock
	jumps bool

	mu     sync.Mutex
	random *rand.Rand
	now    time.Time // instant of the last stamp
	jump   time.Duration
}

// newClock chooses a clock. Most of them are right.
func newClock(random *rand.Rand, zone *time.Location, now time.Time) *clock {
	c := &clock{random: random, zone: zone, now: now, jumps: chance(random, 30)}
	switch n := random.IntN(100); {
	case n < 20:
		c.off = time.Duration(random.IntN(20*60)-10*60) * time.Second
	case n < 35:
		c.off = time.Duration(random.IntN(28)-14) * time.Hour // another zone than the account says
	}
	return c
}

// set lets an instant come.
func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	c.mayJump(40)
}

// stamp is the time of the next change.
func (c *clock) stamp() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Duration(c.random.IntN(3)) * time.Second)
	c.mayJump(5)
	return wall(c.now, c.zone).Add(c.off + c.jump)
}

// pass lets the second of the last change end. A run waits for that, here not so long.
func (c *clock) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
}

// mayJump lets the clock jump in so many of a hundred cases. The hour that comes twice in
// autumn is a jump too, and all of them are less than two hours. mu is held.
func (c *clock) mayJump(percent int) {
	if c.jumps && chance(c.random, percent) {
		c.jump = time.Duration(c.random.IntN(50*60)-25*60) * time.Second
	}
}

// weather is what a process meets at the service.
type weather struct {
	seed     uint64
	storm    float64     // share of requests that go wrong
	outageAt int         // the request from which on all go wrong, 0 for none
	before   func(n int) // what happens before the request with this number is answered
}

// service is the form service of a life, over real HTTP.
type service struct {
	*front
	form  *formservice.Server
	clock *clock

	mu      sync.Mutex
	weather weather
	arrived int
	told    bool // the last request asked what changed
}

func startService(key string, form *formservice.Form, clock *clock, faults formservice.Faults) *service {
	s := &service{clock: clock, form: &formservice.Server{Key: key, Forms: []*formservice.Form{form}, Faults: faults, API: formservice.Both, Files: true, Zone: clock.zone}}
	s.form.Decide = s.decide
	s.front = newFront(s.answer)
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

// answer answers a request, or does not.
func (s *service) answer(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	s.arrived++
	n, sky := s.arrived, s.weather
	feed, told := strings.Contains(q.URL.RawQuery, "date_update"), s.told
	s.told = feed
	s.mu.Unlock()
	if sky.before != nil {
		sky.before(n)
	}
	if told && !feed {
		s.clock.pass() // as a run that was told of a change waits before it reads
	}
	s.form.ServeHTTP(w, q)
}

// decide lets the service fail as the weather has it.
func (s *service) decide(q formservice.Request) formservice.Fault {
	s.mu.Lock()
	sky, n := s.weather, s.arrived
	s.mu.Unlock()
	if sky.outageAt > 0 && n >= sky.outageAt {
		return pick(source(sky.seed, 0), formservice.FaultBusy, formservice.FaultHTML, formservice.FaultReset)
	}
	random := source(sky.seed, 1<<32+uint64(q.Number)) //nolint:gosec // counted from 1
	if random.Float64() >= sky.storm {
		return formservice.NoFault
	}
	return pick(random, formservice.FaultBusy, formservice.FaultBusy, formservice.FaultHTML, formservice.FaultEmpty, formservice.FaultCut,
		formservice.FaultTruncate, formservice.FaultReset, formservice.FaultSlow)
}
