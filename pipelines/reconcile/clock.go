package reconcile

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas/plain"
)

// This machine's clock, the service's clock or the definition's zone may be wrong. Runs warn
// of that and `formetl doctor` reports it in the same words, which are in this file.

// Imported returns the warning about results that are dated further in the future than any two
// zones differ.
func Imported() *definition.Fault {
	return &definition.Fault{
		Text: "some results are dated more than a day in the future: they were imported with such dates, or the service's clock is wrong; a run reads them like the others",
		Cure: "look at the newest results with `formetl preview DEFINITION --latest`; if the service's clock is wrong, tell those who run the service",
	}
}

// ClocksDiffer says that this machine's clock and the service's differ too much. Ours is
// ahead by off at least, or behind if that is negative. The machine is at fault.
func ClocksDiffer(ours, theirs time.Time, off time.Duration) *definition.Fault {
	direction := "ahead of"
	if off < 0 {
		direction = "behind"
	}
	return &definition.Fault{
		Code: 74,
		Text: fmt.Sprintf("this machine's clock is %s %s the service's: %s here, %s in the service's Date header",
			plain.Lasting(off.Abs()), direction, ours.UTC().Format(time.RFC3339), theirs.UTC().Format(time.RFC3339)),
		Cure: "set this machine's clock by the network (NTP); if it is right, tell those who run the service",
	}
}

// ZoneIsWrong says that the newest change, a wall-clock time, lies in the future of the zone
// that the definition names, by at least the given time.
func ZoneIsWrong(form string, zone *time.Location, newest time.Time, by time.Duration) *definition.Fault {
	return &definition.Fault{
		Code: 78,
		Text: fmt.Sprintf("the time zone seems wrong: the newest change of form %s is dated %s, which is %s in the future in %s",
			form, load.Wall(newest), plain.Lasting(by), zone),
		Cure: "set source.timezone to the time zone in the account's settings, and run once with --full, which replaces what was written by the wrong one; or export again with that --timezone",
	}
}

// Later says what is wrong where results are dated later than a run's present: the zone, this
// machine's clock, or imported dates. newest is the latest wall-clock time of these results.
// theirs is the service's clock by the Date header of an answer, zero where no answer had one.
// Later returns nil where nothing is wrong, because the results came meanwhile.
func Later(form string, zone *time.Location, newest, ours, theirs time.Time) *definition.Fault {
	now := theirs
	if now.IsZero() {
		now = ours
	}
	off := ours.Sub(now)
	switch by := Ahead(zone, newest, now); {
	case by > reading.WidestZone:
		return Imported()
	case by > 0:
		return ZoneIsWrong(form, zone, newest, by)
	case off.Abs() >= reading.ClockLeeway:
		return ClocksDiffer(ours, theirs, off)
	}
	return nil
}

// serviceLeeway is by how much a service's own clock may be off.
const serviceLeeway = 5 * time.Minute

// Ahead returns by how much a wall-clock time lies in the future of a zone. It is 0 for as
// little as a service's clock may be off, or as clocks were set back in the last hours.
func Ahead(zone *time.Location, newest, now time.Time) time.Duration {
	_, is := now.In(zone).Zone()
	_, was := now.Add(-3 * time.Hour).In(zone).Zone()
	setBack := max(0, time.Duration(was-is)*time.Second)
	by := newest.Sub(load.Wall(now.In(zone)).Time)
	if by <= serviceLeeway+setBack {
		return 0
	}
	return by
}
