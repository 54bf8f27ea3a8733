package doctor

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// clockFault is from where on clocks differ too much: S3 refuses requests, and a range
// without `to` ends too far from the service's present.
const clockFault = 15 * time.Minute

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
	c := Check{Name: "clock", State: OK, Detail: "this machine's clock and the service's agree within " + interval.Rounded(max(off.Abs(), time.Second))}
	if off.Abs() < interval.ClockLeeway {
		return c
	}
	err := &interval.ClockError{Ours: ours, Theirs: theirs, Off: off}
	c.State, c.Detail = Warning, err.Error()
	c.Cure = interval.ClockCure
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
	c.State = OK
	c.Detail = fmt.Sprintf("in %s the newest change is %s old, and nothing lies in the future", zone, interval.Rounded(max(age, 0)))
	return c
}
