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
)

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
	for len(dates) > 0 && interval.Ahead(zone, dates[0], late) > interval.WidestZone {
		dates = dates[1:]
	}
	if len(dates) == 0 {
		c.State = Warning
		c.Detail, c.Cure = interval.Imported, interval.ImportedCure
		return c
	}
	newest := dates[0]
	if ahead := interval.Ahead(zone, newest, late); ahead > 0 {
		err := &interval.ZoneError{Form: form, Zone: zone.String(), Newest: newest, Ahead: ahead}
		c.State, c.Detail, c.Err = Failed, err.Error(), err
		c.Cure = interval.ZoneCure
		return c
	}
	if interval.Ahead(zone, newest, early) > 0 {
		c.State = NotChecked
		c.Detail = "this machine's clock and the service's differ, and the newest change lies in the future of one of them"
		return c
	}
	age := load.Wall(theirs.In(zone)).Sub(newest)
	if age > interval.WidestZone {
		c.State, c.Detail = NotChecked, fmt.Sprintf("the newest change is %s old, and only a fresh one tells of the zone", interval.Rounded(age))
		return c
	}
	if hours := lag(dates, age); hours > 0 {
		c.State = Warning
		c.Detail = fmt.Sprintf("the newest changes follow each other within minutes, and in %s the last one is %s old: the account's clock may be behind that zone by %d h, or the form is quiet just now", zone, interval.Rounded(age), hours)
		c.Cure = "compare source.timezone with the zone that the account's settings name"
		return c
	}
	c.State = OK
	c.Detail = fmt.Sprintf("in %s the newest change is %s old, and nothing lies in the future", zone, interval.Rounded(max(age, 0)))
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
