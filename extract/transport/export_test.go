package transport

import (
	"context"
	"net/http"
)

// What the tests outside the package look at.

const (
	DoubtfulTries = doubtfulTries
	OpensAfter    = opensAfter
	MaxBytes      = maxBytes
)

var HostUnknown = &NetworkError{doubtful: true}

// MeaningOf tells what an error counts as, whether the service answered, and whether it is away.
func MeaningOf(err error, met bool) (outcome string, answered, absent bool) {
	m := meaningOf(err)
	return m.outcome, m.answered, m.isAbsence(met)
}

func (s *Sender) Settings() *Config { return &s.cfg }

// Most is the size in bytes up to which an answer is read.
func (s *Sender) Most() *int64 { return &s.most }

func (s *Sender) IsOpen() bool { open, _, _ := s.circuit.state(); return open }

func (s *Sender) FailedProbes() int { return s.circuit.failed }

func (s *Sender) IsProbing() bool { return s.circuit.probing }

func (s *Sender) SetProbing() {
	s.circuit.mu.Lock()
	defer s.circuit.mu.Unlock()
	s.circuit.probing = true
}

// Came is an attempt of some request that ended.
func (s *Sender) Came(ctx context.Context, probe bool, err error, outcome string) {
	s.circuit.leave(ctx, probe, &effort{last: err}, outcome)
}

// Places tells how many requests are under way, and how many wait for a place.
func (s *Sender) Places() (running, waiting int) { return s.gate.running, len(s.gate.waiting) }

// SharesAllBut tells whether two senders share everything but their numbers.
func (s *Sender) SharesAllBut(t *Sender) bool {
	return s.gate == t.gate && s.circuit == t.circuit && s.cfg.Logger == t.cfg.Logger
}

// NewTransport returns the transport that a sender has of its own.
func NewTransport(concurrency int) *http.Transport {
	return newTransport(concurrency, proxyFromEnvironment(), nil)
}
