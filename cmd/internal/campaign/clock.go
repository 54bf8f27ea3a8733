package main

import (
	"math/rand/v2"
	"sync"
	"time"
)

// clock is the service's, which stamps every change of a result. It may differ
// from the account's by hours, and it may jump within two hours, as the program
// allows. Two changes may share a second.
type clock struct {
	zone  *time.Location
	off   time.Duration // how far it is from the account's clock
	jumps bool

	mu     sync.Mutex
	random *rand.Rand
	now    time.Time // instant of the last stamp
	jump   time.Duration
}

// newClock chooses a clock. Half of them are right.
func newClock(random *rand.Rand, zone *time.Location, now time.Time) *clock {
	c := &clock{random: random, zone: zone, now: now}
	switch n := random.IntN(100); {
	case n < 20:
		c.off = time.Duration(random.IntN(20*60)-10*60) * time.Second
	case n < 35:
		c.off = time.Duration(random.IntN(28)-14) * time.Hour // another zone than the account says
	}
	c.jumps = chance(random, 30)
	return c
}

// wall is what the clock shows at an instant, apart from its jumps.
func (c *clock) wall(at time.Time) time.Time { return wall(at, c.zone).Add(c.off) }

// set lets an instant come.
func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	c.mayJump(40)
}

// pass lets the second of the last change end. A run waits for that, here not so long.
func (c *clock) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
}

// stamp is the time of the next change.
func (c *clock) stamp() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Duration(c.random.IntN(3)) * time.Second)
	c.mayJump(5)
	return c.wall(c.now).Add(c.jump)
}

// mayJump lets the clock jump in so many of a hundred cases. mu is held.
func (c *clock) mayJump(percent int) {
	if !c.jumps || !chance(c.random, percent) {
		return
	}
	most := 55 * 60
	if _, soon := changeOf(c.zone, c.now.Add(-6*time.Hour), c.now.Add(6*time.Hour)); soon {
		most = 25 * 60 // the hour that comes twice is a jump too
	}
	c.jump = time.Duration(c.random.IntN(2*most)-most) * time.Second
}

// changeOf is the first instant of a span at which the clocks of a zone are changed, if
// there is one.
func changeOf(zone *time.Location, from, to time.Time) (at time.Time, there bool) {
	offset := func(at time.Time) int { _, seconds := at.In(zone).Zone(); return seconds }
	for at = from.Truncate(30 * time.Minute); at.Before(to); at = at.Add(30 * time.Minute) {
		if offset(at) != offset(at.Add(-time.Second)) {
			return at, true
		}
	}
	return at, false
}

// beforeChange is an instant some hours before the clocks of a zone are changed in spring
// or in autumn.
func beforeChange(random *rand.Rand, zone *time.Location) time.Time {
	from := time.Date(2026, pick(random, time.February, time.August), 1, 0, 0, 0, 0, time.UTC)
	at, _ := changeOf(zone, from, from.AddDate(0, 6, 0))
	return at.Add(-time.Duration(10+random.IntN(10*60)) * time.Minute)
}
