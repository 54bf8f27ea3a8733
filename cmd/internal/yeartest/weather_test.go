package yeartest

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// weather is what lasts longer than a run.
type weather struct {
	outage outage
	until  time.Time // of the outage
	began  time.Time
	storm  float64
	calm   time.Time // end of the storm
	poor   time.Time // up to when there are few requests a day
	few    int
	// Hours of a world at which each comes for sure.
	hour, outageDue, stormDue, poorDue int
}

// newWeather is that of a world of so many hours.
func newWeather(random *rand.Rand, hours int) weather {
	sometime := func() int { return 12 + random.IntN(hours-24) }
	return weather{outageDue: sometime(), stormDue: sometime(), poorDue: sometime()}
}

// pass lets an hour pass over the weather.
func (e *weather) pass(random *rand.Rand, at time.Time) {
	e.hour++
	if !at.Before(e.until) {
		e.outage = inReach
		if random.IntN(90) == 0 || e.hour == e.outageDue {
			e.outage = outage(1 + random.IntN(2))
			e.began, e.until = at, at.Add(time.Duration(1+random.IntN(9))*time.Hour)
		}
	}
	if !at.Before(e.calm) {
		e.storm = 0
		if random.IntN(70) == 0 || e.hour == e.stormDue {
			e.storm = 0.05 + 0.25*random.Float64()
			e.calm = at.Add(time.Duration(1+random.IntN(12)) * time.Hour)
		}
	}
	if !at.Before(e.poor) && (random.IntN(500) == 0 || e.hour == e.poorDue) {
		e.poor, e.few = at.Add(30*time.Hour), 200+random.IntN(350)
	}
}

// serviceClock is the wall clock of the service, by which it stamps what changes.
// It is minutes off, and jumps now and then by less than two hours, together with
// the hour that comes twice in autumn.
func (t *truth) serviceClock() time.Time {
	const (
		steady = 29 * time.Hour // between two jumps
		most   = 58 * time.Minute
		fewer  = 28 * time.Minute // on the day of a change of the clocks
		usual  = 5 * time.Minute
	)
	random := rand.New(rand.NewPCG(t.seed, uint64(t.now.Unix()/int64(steady/time.Second)))) //nolint:gosec // not negative
	spread := usual
	if random.IntN(2) == 0 {
		spread = most
	}
	if !clockChange(t.zone, t.now.Add(-6*time.Hour), t.now.Add(6*time.Hour)).IsZero() {
		spread = min(spread, fewer)
	}
	return t.wall(t.now).Add(spread * time.Duration(random.IntN(2001)-1000) / 1000)
}

// points are where a run may kill itself.
func points() []string {
	return []string{
		"planned", "piece", "read", "verified", "snapshot", "staged", "prepared",
		"check", "intent", "unmark", "parts", "objects", "manifest", "supersede", "mark", "close",
	}
}

// next decides on a run.
func (w *world) next(p *pipeline, at time.Time) *run {
	random := w.random
	w.runs++
	r := &run{
		number: w.runs, pipeline: p, at: at, told: at, seed: random.Uint64(), perDay: usualPerDay,
		outage: w.weather.outage, storm: w.weather.storm, busy: []int{200, 429, 503}[random.IntN(3)], origins: map[string]*origin{},
	}
	if at.Before(w.weather.poor) {
		r.perDay = w.weather.few
	}
	if random.IntN(25) == 0 {
		r.told = at.Add(time.Duration(random.Int64N(int64(30*time.Minute))) - 15*time.Minute)
	}
	switch random.IntN(40) {
	case 0:
		all := points()
		r.fault = fmt.Sprintf("%s:%d", all[random.IntN(len(all))], 1+random.IntN(6))
	case 1:
		r.killAt, r.killAfter = requestOf(random, 18), random.IntN(2) == 0
	}
	if w.weather.began.Equal(at.Truncate(time.Hour)) && random.IntN(3) > 0 {
		r.outageAt = 1 + requestOf(random, 16)
	}
	if random.IntN(10) == 0 {
		r.meddleAt = int(requestOf(random, 16))
	}
	return r
}

// requestOf picks one of the first requests of a run. Half of them are among the
// few that a run sends to which nothing is new.
func requestOf(random *rand.Rand, most int64) int64 {
	if random.IntN(2) == 0 {
		most = 5
	}
	return 1 + random.Int64N(most)
}
