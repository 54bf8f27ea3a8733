package yeartest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

const testKey = "year-test-key"

// service is the form service with an address of its own, where it can also
// not be reached.
type service struct {
	*formservice.Server
	http    *http.Server
	address string

	mu       sync.Mutex
	idle     *sync.Cond // under mu: nothing is under way
	listener net.Listener
	underWay int
	run      *run // whose requests are answered; those of others are not
	data     int  // requests of it for results or counts
	meddle   func()
}

// runKey is where the context of a connection keeps the run that it is of.
type runKey struct{}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{Server: &formservice.Server{Key: testKey, Forms: []*formservice.Form{}}}
	s.idle = sync.NewCond(&s.mu)
	s.Decide = s.decide
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			s.mu.Lock()
			defer s.mu.Unlock()
			return context.WithValue(ctx, runKey{}, s.run)
		},
	}
	// An address of its own keeps the port free while nobody listens.
	s.address = fmt.Sprintf("127.%d.%d.%d:0", 64+os.Getpid()>>16&63, os.Getpid()>>8&255, 1+os.Getpid()&127)
	if err := s.listen(t); err != nil {
		s.address = "127.0.0.1:0" // a machine that has no other
		if err := s.listen(t); err != nil {
			t.Fatal(err)
		}
	}
	s.address = s.listener.Addr().String()
	t.Cleanup(func() { _ = s.http.Close() })
	return s
}

// listen makes the service answer.
func (s *service) listen(t *testing.T) error {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.address)
	if err != nil {
		return err
	}
	s.listener = l
	go func() { _ = s.http.Serve(l) }() // it ends when it is closed
	return nil
}

// weather makes the service listen or not, as a run is to find it.
func (s *service) weather(t *testing.T, r *run) {
	t.Helper()
	there := r.outage != refuses || r.outageAt > 0
	switch {
	case !there && s.listener != nil:
		_ = s.listener.Close()
		s.listener = nil
	case there && s.listener == nil:
		if err := s.listen(t); err != nil {
			t.Fatalf("the service cannot come back: %v", err)
		}
	}
}

// expect begins to answer a run.
func (s *service) expect(r *run, meddle func()) {
	s.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.data, s.meddle = r, 0, meddle
}

// settle ends answering a run, when what is under way is answered. What a
// killed process has sent and nobody has seen yet comes to nothing.
func (s *service) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.underWay > 0 {
		s.idle.Wait()
	}
	s.run = nil
}

// ServeHTTP answers the requests of the run that is expected.
func (s *service) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	r, _ := q.Context().Value(runKey{}).(*run)
	if r == nil || r != s.run {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.underWay++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.underWay--; s.underWay == 0 {
			s.idle.Broadcast()
		}
	}()
	n := r.arrived.Add(1)
	if n == r.killAt && !r.killAfter {
		r.kill()
	}
	s.Server.ServeHTTP(w, q)
	if n == r.killAt && r.killAfter {
		_ = http.NewResponseController(w).Flush()
		r.kill()
	}
}

// decide lets the service fail as the run's weather has it, and lets people
// meddle in the middle of the run.
func (s *service) decide(q formservice.Request) formservice.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	if q.Transaction == formservice.TransactionResults || q.Transaction == formservice.TransactionCount {
		if s.data++; s.meddle != nil && s.data == r.meddleAt {
			s.meddle()
		}
	}
	if r.outage != inReach && int64(q.Number) >= r.outageAt {
		return map[outage]formservice.Fault{answers502: formservice.FaultHTML, refuses: formservice.FaultReset}[r.outage]
	}
	if r.storm == 0 {
		return formservice.NoFault
	}
	random := rand.New(rand.NewPCG(r.seed, uint64(q.Number))) //nolint:gosec // counted from 1
	if random.Float64() >= r.storm {
		return formservice.NoFault
	}
	faults := []formservice.Fault{formservice.FaultBusy, formservice.FaultBusy, formservice.FaultBusy, formservice.FaultHTML, formservice.FaultCut, formservice.FaultTruncate, formservice.FaultReset}
	return faults[random.IntN(len(faults))]
}

// outage is how a service that is not there fails.
type outage int

const (
	inReach outage = iota
	answers502
	refuses
)

func (o outage) String() string { return [...]string{"in reach", "answers 502", "out of reach"}[o] }
