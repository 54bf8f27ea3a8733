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
	if c.jumps && chance(c.random, percent) {
		c.jump = time.Duration(c.random.IntN(110*60)-55*60) * time.Second
	}
}
