package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
)

// The kinds of steps.
const (
	stepRun   = "run"
	stepFull  = "run --full"
	stepRange = "run --from --to"
	stepClean = "clean"
	stepReset = "state reset --yes"
)

// step is one process and what it meets.
type step struct {
	kind string
	span extract.Window // of stepRange
	wait time.Duration

	weather
	changes  []int // requests before which results change
	restless bool  // results change before every request

	fault     string         // the point at which it kills itself
	stopAt    int            // the request at which it is stopped, or
	stopAfter time.Duration  // the time after which it is
	signal    syscall.Signal // how it is stopped, 0 for not
}

// reads tells whether the step reads results, and commits what it reads.
func (s *step) reads() bool { return s.kind != stepClean && s.kind != stepReset }

// mayKill tells whether the step may be killed with SIGKILL.
func (s *step) mayKill() bool { return s.fault != "" || s.signal == syscall.SIGKILL }

// mayStop tells whether the step may be told to stop, by its exit code.
func (s *step) mayStop(code int) bool {
	return s.signal == syscall.SIGTERM && code == 143 || s.signal == syscall.SIGINT && code == 130
}

// cloudy tells whether requests may fail.
func (s *step) cloudy() bool { return s.storm > 0 || s.outageAt > 0 }

// changed tells whether results change while the step reads them.
func (s *step) changed() bool { return len(s.changes) > 0 || s.restless }

// newStep chooses what comes next.
func (l *life) newStep(random *rand.Rand) *step {
	s := &step{kind: stepRun, wait: time.Duration(1+random.IntN(pick(random, 2*60, 30*60))) * time.Minute}
	if l.both {
		l.def.api = pick(random, formservice.V1, formservice.V2)
	}
	switch n := random.IntN(100); {
	case n < 12:
		s.kind = stepFull
	case n < 24 || n < 60 && len(l.def.narrowed) > 0:
		s.kind = stepRange
		s.span.From = l.people.date(l.now, 0).Truncate(time.Duration(pick(random, 1, 3600, 86400)) * time.Second)
		if chance(random, 50) { // perhaps behind all that was read before
			s.span.From = wall(l.now.Add(time.Duration(random.Int64N(int64(s.wait)))), l.people.zone)
		}
		s.span.To = s.span.From.Add(time.Duration(1+random.IntN(10*24)) * time.Hour)
		if n := len(l.def.narrowed); n > 0 { // the last one, which was not finished
			s.span = l.def.narrowed[n-1]
		}
	case n < 33:
		s.kind = pick(random, stepClean, stepClean, stepReset)
	}
	if !s.reads() {
		return s
	}
	s.restless = chance(random, 4)
	s.disturb(random, l.database != nil)
	for range random.IntN(pick(random, 1, 1, 6, 13)) {
		s.changes = append(s.changes, 1+random.IntN(20))
	}
	return s
}

// disturb chooses what goes wrong at the service, and how the step is stopped, if it is.
func (s *step) disturb(random *rand.Rand, tables bool) {
	if chance(random, 25) {
		s.storm = 0.02 + 0.2*random.Float64()
	}
	if chance(random, 8) {
		s.outageAt = 1 + random.IntN(25)
	}
	switch n := random.IntN(100); {
	case n < 18:
		s.fault = newPoint(random, tables)
		return
	case n < 34:
		s.signal = syscall.SIGKILL
	case n < 46:
		s.signal = pick(random, syscall.SIGTERM, syscall.SIGINT)
	}
	if chance(random, 70) {
		s.stopAt = 1 + random.IntN(pick(random, 5, 12, 25))
	} else {
		s.stopAfter = time.Duration(random.IntN(250)) * time.Millisecond
	}
}

// newPoint chooses where a run kills itself, most often in the middle of a commit. Some
// points come once for each output, others once for each part or window.
func newPoint(random *rand.Rand, tables bool) string {
	points := []string{"intent", "unmark", "parts", "manifest", "supersede", "mark", "close"}
	if tables {
		points = append(points, "load", "load", "loaded", "loaded")
	}
	if chance(random, 40) {
		points = []string{"planned", "piece", "read", "verified", "snapshot", "check", "staged", "prepared", "beside", "parts", "objects", "codebook", "file", "file_stored"}
	}
	return fmt.Sprintf("%s:%d", pick(random, points...), pick(random, 1, 1, 1, 2, 2, 3, 4))
}
