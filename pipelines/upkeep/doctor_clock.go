package upkeep

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas/plain"
)

// clockFault is the difference of this machine's clock and the service's from which on a run fails
// or reads wrong data: S3 refuses requests, and a range without `to` ends too far from the
// service's present.
const clockFault = 15 * time.Minute

// judgeClock compares theirs, the service's clock by the header Date of its last answer (RFC 9110,
// section 6.6.1), with ours, this machine's clock when that answer came. The header has full
// seconds. How long the answer took is far less than the differences that are reported.
func judgeClock(theirs, ours time.Time) Check {
	if theirs.IsZero() {
		return Check{Name: "clock", State: NotChecked, Detail: "no answer had a Date header, so the service's clock is not known"}
	}
	var off time.Duration
	switch last := theirs.Add(time.Second); {
	case ours.After(last):
		off = ours.Sub(last)
	case ours.Before(theirs):
		off = ours.Sub(theirs)
	}
	if off.Abs() < reading.ClockLeeway {
		return Check{Name: "clock", State: OK, Detail: "this machine's clock and the service's agree within " + plain.Lasting(max(off.Abs(), time.Second))}
	}
	err := reconcile.ClocksDiffer(ours, theirs, off)
	if off.Abs() < clockFault {
		return Check{Name: "clock", State: Warning, Detail: err.Text, Cure: err.Cure}
	}
	c := failed("clock", "", err, err.Cure)
	c.Detail += "; ranges without `to` end at the wrong time, and S3 refuses requests"
	return c
}

// judgeZone compares the dates of the newest changes of a form, the latest first, with the present
// by this machine's clock and the service's. A date in the future proves that the zone of the
// definition is wrong. A zone too far east is not found: it makes results look old, as they are
// in a form that nobody fills in.
func judgeZone(zone *time.Location, form string, dates []time.Time, ours, theirs time.Time) Check {
	c := Check{Name: "zone", Of: form, State: NotChecked}
	early, late := ours, theirs
	if late.Before(early) {
		early, late = late, early
	}
	for len(dates) > 0 && reconcile.Ahead(zone, dates[0], late) > reading.WidestZone {
		dates = dates[1:]
	}
	if len(dates) == 0 {
		imported := reconcile.Imported()
		c.State, c.Detail, c.Cure = Warning, imported.Text, imported.Cure
		return c
	}
	newest := dates[0]
	age := load.Wall(theirs.In(zone)).Sub(newest)
	switch by := reconcile.Ahead(zone, newest, late); {
	case by > 0:
		err := reconcile.ZoneIsWrong(form, zone, newest, by)
		return failed("zone", form, err, err.Cure)
	case reconcile.Ahead(zone, newest, early) > 0:
		c.Detail = "this machine's clock and the service's differ: by one of them the newest change is in the future, by the other not"
	case age > reading.WidestZone:
		c.Detail = fmt.Sprintf("the newest change is %s old, and only a change of the last day can show whether the zone is right: compare it with the account's settings, or fill in the form and run doctor again", plain.Lasting(age))
	default:
		c.State, c.Detail = OK, fmt.Sprintf("in %s the newest change is %s old, and no date is in the future", zone, plain.Lasting(max(age, 0)))
	}
	return c
}
