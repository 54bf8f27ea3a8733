package interval

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
)

// What clocks and dates can tell of a zone.
const (
	// ClockLeeway is by how much two clocks differ that agree: `settle` and lookbacks make
	// up for it.
	ClockLeeway = time.Minute
	// WidestZone is more than any two zones of the world differ by.
	WidestZone = 26 * time.Hour

	zoneLeeway = 5 * time.Minute // a service's own clock may be minutes off
)

// What to do about a zone or a clock that is wrong, and what results tell that lie too far
// in the future.
const (
	ZoneCure     = "set source.timezone to the zone that the account's settings name"
	ClockCure    = "let this machine take its time from the network (NTP); if it is right, tell those who run the service"
	Imported     = "results lie further in the future than zones differ, so they tell of no zone: they were imported, or the service's clock is wrong"
	ImportedCure = "look at the newest results with `formetl preview`; if the service's clock is wrong, tell those who run it"
)

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
		Rounded(e.Off.Abs()), direction, e.Ours.UTC().Format(time.RFC3339), e.Theirs.UTC().Format(time.RFC3339))
}

// ZoneError says that results lie in the future of the zone.
type ZoneError struct {
	Form, Zone string
	Newest     time.Time     // wall-clock time of the newest change
	Ahead      time.Duration // by how much it lies in the future at least
}

// Error names the result's date and what it proves.
func (e *ZoneError) Error() string {
	return fmt.Sprintf("the newest change of form %s is dated %s, which is %s from now in %s: the account's clock is ahead of that zone by so much at least",
		e.Form, load.Wall(e.Newest), Rounded(e.Ahead), e.Zone)
}

// Ahead returns by how much a wall-clock time lies in the future of a zone. It is 0 for as
// little as a service's clock may be off, or as clocks were set back in the last hours.
func Ahead(zone *time.Location, newest, now time.Time) time.Duration {
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
	switch ahead := Ahead(zone, newest, now); {
	case ahead > WidestZone:
		return Imported, ImportedCure
	case ahead > 0:
		return (&ZoneError{Form: form, Zone: zone.String(), Newest: newest, Ahead: ahead}).Error(), ZoneCure
	case off.Abs() >= ClockLeeway:
		return (&ClockError{Ours: ours, Theirs: theirs, Off: off}).Error(), ClockCure
	}
	return "", ""
}

// Rounded is a length of time in words that people read.
func Rounded(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return counted(int(d.Round(time.Second)/time.Second), "second")
	case d.Round(time.Minute) < 3*time.Hour:
		return counted(int(d.Round(time.Minute)/time.Minute), "minute")
	case d < 48*time.Hour:
		return counted(int(d.Round(time.Hour)/time.Hour), "hour")
	}
	return counted(int(d/(24*time.Hour)), "day")
}

func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
