package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// The kinds of steps.
const (
	stepRun    = "run"
	stepFull   = "run --full"
	stepRange  = "run --from --to"
	stepExport = "export"
	stepClean  = "clean"
	stepReset  = "state reset"
	stepReplay = "replay"
)

// step is one process and what it meets.
type step struct {
	kind     string
	from, to time.Time // of stepRange, wall clock
	wait     time.Duration

	storm    float64
	empty    float64
	outage   formservice.Fault
	outageAt int
	changes  []int         // requests before which results change
	restless bool          // results change before every request
	forgets  bool          // the service does not sort this time
	skew     time.Duration // how far the clock of the machine is off
	perDay   int           // requests that the definition allows, 0: as many as a process likes

	fault     string         // the point at which it kills itself
	stopAt    int            // the request at which it is stopped, or
	stopAfter time.Duration  // the time after which it is
	answered  bool           // when the request was answered
	signal    syscall.Signal // how it is stopped, 0 for not
	twin      bool           // another process does the same at the same time
}

// killed tells whether the step may be killed with SIGKILL.
func (s *step) killed() bool { return s.fault != "" || s.signal == syscall.SIGKILL }

// stopped tells whether the step may be told to stop, by its exit code.
func (s *step) stopped(code int) bool {
	return s.signal == syscall.SIGTERM && code == 143 || s.signal == syscall.SIGINT && code == 130
}

// reads tells whether the step reads results, and commits what it reads.
func (s *step) reads() bool {
	return s.kind != stepClean && s.kind != stepReset && s.kind != stepCleanUnlisted
}

// span is the range that the step's flags give.
func (s *step) span() readback.Span {
	return readback.Span{From: readback.WallTime{Time: s.from}, To: readback.WallTime{Time: s.to}}
}

// calm is a step that nobody disturbs.
func calm(kind string) *step { return &step{kind: kind, wait: time.Hour} }

// newPoint chooses where a run kills itself, most often in the middle of a commit. Some
// points come once for each output, others once for each part or window.
func newPoint(random *rand.Rand, tables bool) string {
	points := []string{"intent", "unmark", "parts", "manifest", "supersede", "mark", "close"}
	if tables {
		points = append(points, "load", "load", "loaded", "loaded")
	}
	if chance(random, 40) {
		points = []string{"planned", "piece", "read", "verified", "snapshot", "check", "staged", "prepared", "beside", "parts", "objects", "codebook"}
	}
	return fmt.Sprintf("%s:%d", pick(random, points...), pick(random, 1, 1, 1, 2, 2, 3, 4))
}

// newStep chooses what comes next.
func (l *life) newStep(random *rand.Rand) *step {
	s := &step{kind: stepRun, wait: time.Duration(1+random.IntN(30*60)) * time.Minute}
	if l.both {
		l.def.api = pick(random, formservice.V1, formservice.V2)
	}
	n := random.IntN(100)
	if l.hourly {
		s.wait = time.Duration(50+random.IntN(20)) * time.Minute
		n += pick(random, 0, 48, 100) // mostly runs
	}
	switch {
	case n < 12:
		s.kind = stepFull
	case n < 24 || n < 60 && len(l.def.narrowed) > 0:
		s.kind = stepRange
		s.from = l.people.date(l.now).Truncate(time.Duration(pick(random, 1, 3600, 86400)) * time.Second)
		if chance(random, 50) { // perhaps behind all that was read before
			s.from = wall(l.now.Add(time.Duration(random.Int64N(int64(s.wait)))), l.people.zone)
		}
		s.to = s.from.Add(time.Duration(1+random.IntN(10*24)) * time.Hour)
		if n := len(l.def.narrowed); n > 0 { // the last one, which was not finished
			s.from, s.to = l.def.narrowed[n-1].From.Time, l.def.narrowed[n-1].To.Time
		}
	case n < 36:
		s.kind = stepExport
	case n < 48:
		s.kind = pick(random, stepClean, stepClean, stepReset, stepReplay)
	}
	if !s.reads() {
		return s
	}
	if !l.lawful {
		s.cloud(random)
	}
	s.endEarly(random, l.lawful, l.site.database != nil)
	for range mayChange(random, l.lawful) {
		s.changes = append(s.changes, 1+random.IntN(20))
	}
	l.mistake(s, random)
	s.restless = chance(random, 4)
	s.twin = !l.lawful && l.copes() && len(l.damages) == 0 && !s.disturbed() && chance(random, 5) && s.kind == stepRun
	return s
}

// mistake chooses what is wrong this time at the machine, with its budget, or at a service
// that sorts else. There a page shows that it does not.
func (l *life) mistake(s *step, random *rand.Rand) {
	if chance(random, 8) {
		s.skew = time.Duration(random.IntN(30*60)-15*60) * time.Second
	}
	if !l.lawful && s.kind != stepExport && chance(random, 4) {
		s.perDay = 10 + random.IntN(200)
	}
	f := l.service.form.Faults
	s.forgets = !l.lawful && f.PageCap == 0 && l.def.unfinished == none && l.export.unfinished == none && chance(random, 4)
}

// disturbed tells whether anything keeps the step from what it is to do.
func (s *step) disturbed() bool {
	return s.cloudy() || s.changed() || s.fault != "" || s.signal != 0
}

// cloudy tells whether requests may fail.
func (s *step) cloudy() bool { return s.storm > 0 || s.empty > 0 || s.outageAt > 0 }

// changed tells whether results change while the step reads them.
func (s *step) changed() bool { return len(s.changes) > 0 || s.restless }

// mayChange is how many changes a step meets, mostly none, and mostly some in a lawful life.
func mayChange(random *rand.Rand, lawful bool) int {
	switch none := chance(random, 55); {
	case lawful:
		return random.IntN(13)
	case none:
		return 0
	}
	return 1 + random.IntN(5)
}

// cloud chooses what goes wrong at the service.
func (s *step) cloud(random *rand.Rand) {
	if chance(random, 25) {
		s.storm = 0.02 + 0.2*random.Float64()
	}
	if chance(random, 10) {
		s.empty = 0.02 + 0.1*random.Float64()
	}
	if chance(random, 8) {
		s.outageAt = 1 + random.IntN(25)
		s.outage = pick(random, formservice.FaultBusy, formservice.FaultHTML, formservice.FaultReset)
	}
}

// endEarly chooses how the step is stopped, if it is. In a lawful life nobody stops it.
func (s *step) endEarly(random *rand.Rand, lawful, tables bool) {
	switch n := random.IntN(100); {
	case lawful || n >= 46:
		return
	case n < 18:
		s.fault = newPoint(random, tables)
		return
	case n < 34:
		s.signal = syscall.SIGKILL
	default:
		s.signal = pick(random, syscall.SIGTERM, syscall.SIGINT)
	}
	if chance(random, 70) {
		s.stopAt, s.answered = 1+random.IntN(pick(random, 5, 12, 25)), chance(random, 50)
	} else {
		s.stopAfter = time.Duration(random.IntN(250)) * time.Millisecond
	}
}
