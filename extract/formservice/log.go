package formservice

import (
	"maps"
	"slices"
	"time"
)

// Request is one entry of the request log.
type Request struct {
	Number      int    // from 1, by arrival
	Nth         int    // among those of its transaction, from 1
	API         string // V1 or V2, "" for files
	Method      string
	Transaction string // one of the Transaction constants, "" for an unknown path
	Account     string
	Form        string
	Query       string // as it came, without API key and token
	File        string // the name of an uploaded file, decoded; "" for the page to log in at
	Secret      bool   // a file was asked for with a key, a token or a header Authorization
	Status      int    // HTTP status, 0 where the connection was closed without one
	Results     int    // that the answer held
	Fault       Fault
}

// journal is what a server remembers of its requests.
type journal struct {
	number   int
	nth      map[string]int // by transaction: those that arrived
	requests []Request
	now      int // requests under way
	peak     int

	recent []time.Time // of the requests of the last minute that were let in
	data   int         // requests for results or counts, for insert-every and its like
}

// leastLogged is how many requests the log holds at least: when there are twice as
// many, the older half goes.
const leastLogged = 50_000

// enter numbers a request, which leave ends.
func (s *Server) enter(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.number++
	s.log.nth[req.Transaction]++
	req.Number, req.Nth = s.log.number, s.log.nth[req.Transaction]
	s.log.now++
	s.log.peak = max(s.log.peak, s.log.now)
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.now--
}

func (s *Server) record(req Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.log.requests) >= 2*leastLogged {
		s.log.requests = slices.Delete(s.log.requests, 0, leastLogged)
	}
	s.log.requests = append(s.log.requests, req)
}

// Log returns the requests since the start or the last Reset, in the order in
// which they were answered; of very many only the last 50,000 or more.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log.requests)
}

// Counts returns the number of requests by transaction; "" counts those to
// unknown paths.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.log.nth)
}

// Peak returns the most requests seen under way at once.
func (s *Server) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.peak
}

// Reset empties the log and the counters; request numbers begin at 1 again.
// Forms stay as they are.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = journal{nth: make(map[string]int), now: s.log.now, peak: s.log.now}
}
