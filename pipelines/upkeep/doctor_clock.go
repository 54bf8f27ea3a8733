package upkeep

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

const (
	// clockFault is from where on clocks differ too much: S3 refuses requests, and a range
	// without `to` ends too far from the service's present.
	clockFault = 15 * time.Minute
	// zoneLeeway is by how much a service's own clock may be off.
	zoneLeeway = 5 * time.Minute
)

// What to do about a zone or a clock that is wrong, and what results tell that lie too far
// in the future.
const (
	zoneCure     = "set source.timezone to the zone that the account's settings name"
	clockCure    = "let this machine take its time from the network (NTP); if it is right, tell those who run the service"
	imported     = "results lie further in the future than zones differ, so they tell of no zone: they were imported, or the service's clock is wrong"
	importedCure = "look at the newest results with `formetl preview`; if the service's clock is wrong, tell those who run it"
)

// judgeClock compares the service's clock, by the header Date of its last answer (RFC 9110,
// section 6.6.1), with ours when that came. The header has full seconds. The time of the
// request is far less than what is told of.
func judgeClock(theirs, ours time.Time) Check {
	if theirs.IsZero() {
		return Check{Name: "clock", State: NotChecked, Detail: "no answer came with a Date header, so the service's clock is not known"}
	}
	var off time.Duration
	switch last := theirs.Add(time.Second); {
	case ours.After(last):
		off = ours.Sub(last)
	case ours.Before(theirs):
		off = ours.Sub(theirs)
	}
	if off.Abs() < reading.ClockLeeway {
		return Check{Name: "clock", State: OK, Detail: "this machine's clock and the service's agree within " + rounded(max(off.Abs(), time.Second))}
	}
	err := clocksDiffer(ours, theirs, off)
	if off.Abs() < clockFault {
		return Check{Name: "clock", State: Warning, Detail: err.Text, Cure: clockCure}
	}
	c := failed("clock", "", err, clockCure)
	c.Detail += "; a range without `to` ends by this machine's clock, and S3 refuses requests of such a clock"
	return c
}

// clocksDiffer says that this machine's clock and the service's differ too much. Ours is
// ahead by off at least, or behind if that is negative. The machine is at fault.
func clocksDiffer(ours, theirs time.Time, off time.Duration) *Fault {
	direction := "ahead of"
	if off < 0 {
		direction = "behind"
	}
	return &Fault{Code: codeIO, Text: fmt.Sprintf("this machine's clock is %s %s the service's: %s here, %s in the service's Date header",
		rounded(off.Abs()), direction, ours.UTC().Format(time.RFC3339), theirs.UTC().Format(time.RFC3339))}
}

// judgeZone compares the dates of the newest changes of a form, the latest first, with
// the present by both clocks. A date in the future proves that the zone is wrong. A zone
// too far east makes results look old, which a quiet form does too, so it is not found.
func judgeZone(zone *time.Location, form string, dates []time.Time, ours, theirs time.Time) Check {
	c := Check{Name: "zone", Of: form, State: NotChecked}
	early, late := ours, theirs
	if late.Before(early) {
		early, late = late, early
	}
	for len(dates) > 0 && ahead(zone, dates[0], late) > reading.WidestZone {
		dates = dates[1:]
	}
	if len(dates) == 0 {
		c.State, c.Detail, c.Cure = Warning, imported, importedCure
		return c
	}
	newest := dates[0]
	age := load.Wall(theirs.In(zone)).Sub(newest)
	switch by := ahead(zone, newest, late); {
	case by > 0:
		return failed("zone", form, zoneIsWrong(form, zone, newest, by), zoneCure)
	case ahead(zone, newest, early) > 0:
		c.Detail = "this machine's clock and the service's differ, and the newest change lies in the future of one of them"
	case age > reading.WidestZone:
		c.Detail = fmt.Sprintf("the newest change is %s old, and only a fresh one tells of the zone", rounded(age))
	default:
		c.State, c.Detail = OK, fmt.Sprintf("in %s the newest change is %s old, and nothing lies in the future", zone, rounded(max(age, 0)))
	}
	return c
}

// zoneIsWrong says that the newest change, a wall-clock time, lies in the future of the zone
// that the definition names, by so much at least.
func zoneIsWrong(form string, zone *time.Location, newest time.Time, by time.Duration) *Fault {
	return &Fault{Code: codeConfig, Text: fmt.Sprintf("the newest change of form %s is dated %s, which is %s from now in %s: the account's clock is ahead of that zone by so much at least",
		form, load.Wall(newest), rounded(by), zone)}
}

// Later says what a run is told by results that are dated later than its present, in the
// words of `formetl doctor`, and what to do. newest is the latest of their wall-clock
// times. theirs is the service's clock by the Date header of an answer, zero where none
// came with one. Both texts are "" where nothing is wrong: the results came meanwhile.
func Later(form string, zone *time.Location, newest, ours, theirs time.Time) (what, cure string) {
	now := theirs
	if now.IsZero() {
		now = ours
	}
	off := ours.Sub(now)
	switch by := ahead(zone, newest, now); {
	case by > reading.WidestZone:
		return imported, importedCure
	case by > 0:
		return zoneIsWrong(form, zone, newest, by).Text, zoneCure
	case off.Abs() >= reading.ClockLeeway:
		return clocksDiffer(ours, theirs, off).Text, clockCure
	}
	return "", ""
}

// ahead returns by how much a wall-clock time lies in the future of a zone. It is 0 for as
// little as a service's clock may be off, or as clocks were set back in the last hours.
func ahead(zone *time.Location, newest, now time.Time) time.Duration {
	_, is := now.In(zone).Zone()
	_, was := now.Add(-3 * time.Hour).In(zone).Zone()
	setBack := max(0, time.Duration(was-is)*time.Second)
	by := newest.Sub(load.Wall(now.In(zone)).Time)
	if by <= zoneLeeway+setBack {
		return 0
	}
	return by
}

// rounded is a length of time in words that people read.
func rounded(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return count(int(d.Round(time.Second)/time.Second), "second", "seconds")
	case d.Round(time.Minute) < 3*time.Hour:
		return count(int(d.Round(time.Minute)/time.Minute), "minute", "minutes")
	case d < 48*time.Hour:
		return count(int(d.Round(time.Hour)/time.Hour), "hour", "hours")
	}
	return count(int(d/(24*time.Hour)), "day", "days")
}
