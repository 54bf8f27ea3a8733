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
		r.killAt, r.killAfter = 1+random.Int64N(18), random.IntN(2) == 0
	}
	if w.weather.began.Equal(at.Truncate(time.Hour)) && random.IntN(3) > 0 {
		r.outageAt = 2 + random.Int64N(16)
	}
	if random.IntN(16) == 0 {
		r.meddleAt = 1 + random.IntN(16)
	}
	return r
}
