package upkeep

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// clockFault is from where on clocks differ too much: S3 refuses requests, and a range
// without `to` ends too far from the service's present.
const clockFault = 15 * time.Minute

// zoneLeeway is by how much a service's own clock may be off.
const zoneLeeway = 5 * time.Minute

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
	c := Check{Name: "clock", State: OK, Detail: "this machine's clock and the service's agree within " + rounded(max(off.Abs(), time.Second))}
	if off.Abs() < interval.ClockLeeway {
		return c
	}
	err := &ClockError{Ours: ours, Theirs: theirs, Off: off}
	c.State, c.Detail = Warning, err.Error()
	c.Cure = clockCure
	if off.Abs() >= clockFault {
		c.State, c.Err = Failed, err
		c.Detail += "; a range without `to` ends by this machine's clock, and S3 refuses requests of such a clock"
	}
	return c
}

// judgeZone compares the dates of the newest changes of a form, the latest first, with
// the present by both clocks. A date in the future proves that the zone is wrong. A zone
// too far east makes results look old, which a quiet form does too, so it is not found.
func judgeZone(zone *time.Location, form string, dates []time.Time, ours, theirs time.Time) Check {
	c := Check{Name: "zone", Of: form}
	early, late := ours, theirs
	if late.Before(early) {
		early, late = late, early
	}
	for len(dates) > 0 && ahead(zone, dates[0], late) > interval.WidestZone {
		dates = dates[1:]
	}
	if len(dates) == 0 {
		c.State = Warning
		c.Detail, c.Cure = imported, importedCure
		return c
	}
	newest := dates[0]
	if ahead := ahead(zone, newest, late); ahead > 0 {
		err := &ZoneError{Form: form, Zone: zone.String(), Newest: newest, Ahead: ahead}
		c.State, c.Detail, c.Err = Failed, err.Error(), err
		c.Cure = zoneCure
		return c
	}
	if ahead(zone, newest, early) > 0 {
		c.State = NotChecked
		c.Detail = "this machine's clock and the service's differ, and the newest change lies in the future of one of them"
		return c
	}
	age := load.Wall(theirs.In(zone)).Sub(newest)
	if age > interval.WidestZone {
		c.State, c.Detail = NotChecked, fmt.Sprintf("the newest change is %s old, and only a fresh one tells of the zone", rounded(age))
		return c
	}
	c.State = OK
	c.Detail = fmt.Sprintf("in %s the newest change is %s old, and nothing lies in the future", zone, rounded(max(age, 0)))
	return c
}

// ClockError says that this machine's clock and the service's differ too much.
type ClockError struct {
	Ours, Theirs time.Time
	Off          time.Duration // by how much at least ours is ahead; negative if it is behind
}

// Error gives both clocks.
func (e *ClockError) Error() string {
	direction := "ahead of"
	if e.Off < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s the service's: %s here, %s in the service's Date header",
		rounded(e.Off.Abs()), direction, e.Ours.UTC().Format(time.RFC3339), e.Theirs.UTC().Format(time.RFC3339))
}

// ExitCode is 74: the machine is at fault.
func (e *ClockError) ExitCode() int { return 74 }

// rounded is a length of time in words that people read.
func rounded(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return several(int(d.Round(time.Second)/time.Second), "second")
	case d.Round(time.Minute) < 3*time.Hour:
		return several(int(d.Round(time.Minute)/time.Minute), "minute")
	case d < 48*time.Hour:
		return several(int(d.Round(time.Hour)/time.Hour), "hour")
	}
	return several(int(d/(24*time.Hour)), "day")
}

func several(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// What to do about a zone or a clock that is wrong, and what results tell that lie too far
// in the future.
const (
	zoneCure     = "set source.timezone to the zone that the account's settings name"
	clockCure    = "let this machine take its time from the network (NTP); if it is right, tell those who run the service"
	imported     = "results lie further in the future than zones differ, so they tell of no zone: they were imported, or the service's clock is wrong"
	importedCure = "look at the newest results with `formetl preview`; if the service's clock is wrong, tell those who run it"
)

// ZoneError says that results lie in the future of the zone.
type ZoneError struct {
	Form, Zone string
	Newest     time.Time     // wall-clock time of the newest change
	Ahead      time.Duration // by how much it lies in the future at least
}

// Error names the result's date and what it proves.
func (e *ZoneError) Error() string {
	return fmt.Sprintf("the newest change of form %s is dated %s, which is %s from now in %s: the account's clock is ahead of that zone by so much at least",
		e.Form, load.Wall(e.Newest), rounded(e.Ahead), e.Zone)
}

// ExitCode is 78: the definition names a wrong zone.
func (e *ZoneError) ExitCode() int { return 78 }

// ahead returns by how much a wall-clock time lies in the future of a zone. It is 0 for as
// little as a service's clock may be off, or as clocks were set back in the last hours.
func ahead(zone *time.Location, newest, now time.Time) time.Duration {
	_, is := now.In(zone).Zone()
	_, was := now.Add(-3 * time.Hour).In(zone).Zone()
	setBack := max(0, time.Duration(was-is)*time.Second)
	ahead := newest.Sub(load.Wall(now.In(zone)).Time)
	if ahead <= zoneLeeway+setBack {
		return 0
	}
	return ahead
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
	switch ahead := ahead(zone, newest, now); {
	case ahead > interval.WidestZone:
		return imported, importedCure
	case ahead > 0:
		return (&ZoneError{Form: form, Zone: zone.String(), Newest: newest, Ahead: ahead}).Error(), zoneCure
	case off.Abs() >= interval.ClockLeeway:
		return (&ClockError{Ours: ours, Theirs: theirs, Off: off}).Error(), clockCure
	}
	return "", ""
}
