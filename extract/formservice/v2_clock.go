package formservice

import (
	"cmp"
	"time"
)

const second = 1000 // instants are milliseconds since 1970 UTC

// clock turns wall-clock times of an account into instants. Wall-clock times
// are seconds since 1970-01-01 00:00:00 in the account's zone.
type clock struct {
	zone *time.Location

	random, none    bool // fractions of seconds: any, or not shown
	seconds, coarse bool // bounds are compared by the second: with dates of seconds, or not
}

func newClock(zone *time.Location, f *faults) clock {
	return clock{
		cmp.Or(zone, time.UTC), f.text("v2-fractions") == "random", f.text("v2-fractions") == "none",
		f.on("v2-seconds"), f.on("v2-coarse-bounds"),
	}
}

// offset is how far the zone is east of UTC at an instant in seconds.
func (c clock) offset(unix int64) int64 {
	_, offset := time.Unix(unix, 0).In(c.zone).Zone()
	return int64(offset)
}

// utc is what Instant is, in seconds.
func (c clock) utc(wall int64) int64 {
	before, after := c.offset(wall-daySize), c.offset(wall+daySize)
	first := wall - before
	if before == after || c.offset(first) == before {
		return first
	}
	if second := wall - after; c.offset(second) == after {
		return second
	}
	return first
}

// Instant is when the clocks of a zone show a wall-clock time, which is given in UTC: the
// first of two instants. A time that they skip is moved forward by the gap.
func Instant(wall time.Time, zone *time.Location) time.Time {
	return time.Unix(clock{zone: zone}.utc(wall.Unix()), 0).In(zone)
}

// instant is the instant of a date of a result, with the result's fraction.
func (c clock) instant(id, wall int64) int64 {
	at := c.utc(wall) * second
	if c.random {
		at += int64(uint64(id) * 0x9e3779b97f4a7c15 >> 33 % second)
	}
	return at
}

// compared is the instant that date bounds look at.
func (c clock) compared(id, wall int64) int64 {
	at := c.instant(id, wall)
	if c.seconds {
		return floor(at)
	}
	return at
}

// bound is a bound as it is compared.
func (c clock) bound(at int64) int64 {
	if c.seconds || c.coarse {
		return floor(at)
	}
	return at
}

// floor takes the fraction of a second off an instant.
func floor(at int64) int64 { return time.UnixMilli(at).Unix() * second }

// text is an instant as answers show it.
func (c clock) text(at int64) string {
	layout := "2006-01-02T15:04:05.000Z"
	if c.none {
		layout = "2006-01-02T15:04:05Z"
	}
	return time.UnixMilli(at).UTC().Format(layout)
}

// date is the value of a meta that holds a date: that of API v1, as an
// instant. What is no date stands as it is; an empty one is none.
func (c clock) date(id int64, value string) (text string, ok bool) {
	if value == "" {
		return "", false
	}
	t, err := time.Parse(WallTime, value)
	if err != nil {
		return value, true
	}
	return c.text(c.instant(id, t.Unix())), true
}

// parse reads a bound: ISO 8601 in UTC with up to three digits of a fraction,
// or a date with or without a time by the account's clock.
func (c clock) parse(value string) (at int64, ok bool) {
	for _, layout := range []string{WallTime, time.DateOnly} {
		if t, err := time.Parse(layout, value); err == nil && len(value) == len(layout) {
			return c.utc(t.Unix()) * second, true
		}
	}
	const shortest, longest = len("2006-01-02T15:04:05Z"), len("2006-01-02T15:04:05.000Z")
	if len(value) < shortest || len(value) > longest || value[len(value)-1] != 'Z' {
		return 0, false
	}
	t, err := time.Parse("2006-01-02T15:04:05Z", value) // it takes a fraction too
	if err != nil || len(value) > shortest && value[shortest-1] != '.' {
		return 0, false
	}
	return t.UnixMilli(), true
}
