package jsonapi

import (
	"time"
)

// How dates show fractions of a second.
const (
	FractionsNone   = "none"   // 2026-01-05T17:26:24Z
	FractionsZero   = ""       // …24.000Z
	FractionsRandom = "random" // …24.087Z, by the result's id
)

const (
	wallTime = "2006-01-02 15:04:05"
	second   = 1000 // the instants of this package are milliseconds since 1970 UTC
	around   = 48 * 60 * 60
)

// Clock turns wall-clock times of an account into instants. Wall-clock times
// are seconds since 1970-01-01 00:00:00 in the account's zone.
type Clock struct {
	Zone      *time.Location // nil: UTC
	Fractions string
	Seconds   bool // bounds are compared by the second
	Coarse    bool // bounds lose their fraction, and dates do not
}

// offset is how far the zone is east of UTC at an instant in seconds.
func (c Clock) offset(unix int64) int64 {
	if c.Zone == nil {
		return 0
	}
	_, offset := time.Unix(unix, 0).In(c.Zone).Zone()
	return int64(offset)
}

// utc is the instant, in seconds, at which the zone shows a wall-clock time:
// the first of two. A time that the zone skips is moved forward by the gap.
func (c Clock) utc(wall int64) int64 {
	before, after := c.offset(wall-around/2), c.offset(wall+around/2)
	first := wall - before
	if before == after || c.offset(first) == before {
		return first
	}
	if second := wall - after; c.offset(second) == after {
		return second
	}
	return first
}

// Instant is the instant of a date of a result, with the result's fraction.
func (c Clock) Instant(id, wall int64) int64 {
	at := c.utc(wall) * second
	if c.Fractions == FractionsRandom {
		at += int64(uint64(id) * 0x9e3779b97f4a7c15 >> 33 % second)
	}
	return at
}

// Compared is the instant that date bounds look at.
func (c Clock) Compared(id, wall int64) int64 { return c.reduce(c.Instant(id, wall)) }

// reduce drops what bounds do not look at.
func (c Clock) reduce(at int64) int64 {
	if c.Seconds {
		return floor(at) * second
	}
	return at
}

// bound is a bound as it is compared.
func (c Clock) bound(at int64) int64 {
	if c.Seconds || c.Coarse {
		return floor(at) * second
	}
	return at
}

// floor is the whole second of an instant.
func floor(at int64) int64 {
	if at < 0 {
		return -((-at + second - 1) / second)
	}
	return at / second
}

// Wall is the wall-clock time of an instant. Dates that are more than slack
// seconds earlier or later by the wall clock are so by the instant too.
func (c Clock) Wall(at int64) (wall, slack int64) {
	unix := floor(at)
	if c.offset(unix-around) != c.offset(unix+around) {
		slack = around / 2
	}
	return unix + c.offset(unix), slack + 1
}

// Text is an instant as answers show it.
func (c Clock) Text(at int64) string {
	layout := "2006-01-02T15:04:05.000Z"
	if c.Fractions == FractionsNone {
		layout = "2006-01-02T15:04:05Z"
	}
	return time.UnixMilli(at).UTC().Format(layout)
}

// date is the value of a meta that holds a date: that of API v1, as an
// instant. What is no date stands as it is; an empty one is none.
func (c Clock) date(id int64, value string) (text string, ok bool) {
	if value == "" {
		return "", false
	}
	t, err := time.Parse(wallTime, value)
	if err != nil {
		return value, true
	}
	return c.Text(c.Instant(id, t.Unix())), true
}

// parse reads a bound: ISO 8601 in UTC with up to three digits of a fraction,
// or a date with or without a time by the account's clock.
func (c Clock) parse(value string) (at int64, ok bool) {
	for _, layout := range []string{wallTime, time.DateOnly} {
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
