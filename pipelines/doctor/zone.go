package doctor

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// What dates can tell of a zone.
const (
	mostOffset = 14 * time.Hour  // no pattern is looked for beyond
	busyGap    = 5 * time.Minute // a form is busy if no two of its newest changes are further apart
	busyRows   = 5               // as few changes tell whether it is
	zoneLeeway = 5 * time.Minute // a service's own clock may be minutes off
)

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

// judgeZone compares the dates of the newest changes of a form, the latest first, with
// the present by both clocks. A date in the future proves that the zone is wrong. That the
// zone is too far east makes results look old, which a quiet form does too: only a
// pattern hints at it.
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
	if hours := lag(dates, age); hours > 0 {
		c.State = Warning
		c.Detail = fmt.Sprintf("the newest changes follow each other within minutes, and in %s the last one is %s old: the account's clock may be behind that zone by %d h, or the form is quiet just now", zone, rounded(age), hours)
		c.Cure = "compare source.timezone with the zone that the account's settings name"
		return c
	}
	c.State = OK
	c.Detail = fmt.Sprintf("in %s the newest change is %s old, and nothing lies in the future", zone, rounded(max(age, 0)))
	return c
}

// lag returns by how many whole hours a busy form seems to be late, 0 if it does not.
func lag(dates []time.Time, age time.Duration) int {
	if len(dates) < busyRows || age > mostOffset {
		return 0
	}
	gap := time.Minute
	for i := 1; i < len(dates); i++ {
		gap = max(gap, dates[i-1].Sub(dates[i]))
	}
	hours := (age + time.Minute).Truncate(time.Hour)
	if gap > busyGap || hours == 0 || age-hours > gap {
		return 0
	}
	return int(hours / time.Hour)
}

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
