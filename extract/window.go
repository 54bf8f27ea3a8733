package extract

import (
	"fmt"
	"time"
)

// WireTime is the layout of every date on the wire: wall-clock time of the
// account's zone, one-second resolution, no offset (specification, section 4.5).
const WireTime = "2006-01-02 15:04:05"

// Window is a half-open span [From, To) of wall-clock time in the account's zone,
// in whole seconds. Its times are stored as UTC but are no instants, so a change to or from
// summer time can neither lose nor double a result. A zero From or To means no bound.
type Window struct {
	From, To time.Time
}

// String formats the window as "2026-01-01 00:00:00/2026-02-01 00:00:00",
// with ".." for a missing bound.
func (w Window) String() string { return onWire(w.From, "..") + "/" + onWire(w.To, "..") }

// Holds tells whether a time lies in the window.
func (w Window) Holds(t time.Time) bool {
	return !t.Before(w.From) && (w.To.IsZero() || t.Before(w.To))
}

// Overlaps tells whether two windows have time in common.
func (w Window) Overlaps(other Window) bool {
	return (w.To.IsZero() || other.From.Before(w.To)) && (other.To.IsZero() || w.From.Before(other.To))
}

// Earlier returns the earlier one of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// place names the window for people, to stand before a page: "window 2026-01-01 …, ". It is ""
// for the window without bounds.
func (w Window) place() string {
	switch {
	case w.From.IsZero() && w.To.IsZero():
		return ""
	case w.From.IsZero():
		return "window before " + w.To.Format(WireTime) + ", "
	case w.To.IsZero():
		return "window from " + w.From.Format(WireTime) + ", "
	}
	return "window " + w.String() + ", "
}

// onWire formats a bound of a window as WireTime. It returns none if the bound is missing.
func onWire(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Format(WireTime)
}

// Step is the size of fixed windows in months, days or seconds of wall-clock
// time. One of the three is greater than zero. The zero Step is "auto": counts
// decide the size of windows.
type Step struct {
	Months, Days, Seconds int
}

// Auto tells whether windows are sized by counts.
func (s Step) Auto() bool { return s == Step{} }

// String returns the step as a definition has it: auto, 15m, 6h, 1d, 1mo.
func (s Step) String() string {
	switch {
	case s.Months > 0:
		return fmt.Sprintf("%dmo", s.Months)
	case s.Days > 0:
		return fmt.Sprintf("%dd", s.Days)
	case s.Seconds > 0 && s.Seconds%3600 == 0:
		return fmt.Sprintf("%dh", s.Seconds/3600)
	case s.Seconds > 0 && s.Seconds%60 == 0:
		return fmt.Sprintf("%dm", s.Seconds/60)
	case s.Seconds > 0:
		return fmt.Sprintf("%ds", s.Seconds)
	}
	return "auto"
}

// firstMonday anchors steps of days: 7d is a week that begins on Monday.
var firstMonday = time.Date(1969, 12, 29, 0, 0, 0, 0, time.UTC)

// index returns the number of the step that contains t. Steps of months count
// from the year 0, steps of days and seconds from firstMonday.
func (s Step) index(t time.Time) int64 {
	if s.Months > 0 {
		return int64((t.Year()*12 + int(t.Month()) - 1) / s.Months)
	}
	since, size := t.Unix()-firstMonday.Unix(), s.size()
	return (since - (since%size+size)%size) / size
}

// at returns the time at which the step with this index begins.
func (s Step) at(index int64) time.Time {
	if s.Months > 0 {
		return time.Date(0, time.Month(int(index)*s.Months+1), 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Unix(firstMonday.Unix()+index*s.size(), 0).UTC()
}

// start returns the step's boundary at or before t.
func (s Step) start(t time.Time) time.Time { return s.at(s.index(t)) }

// next returns the step's first boundary after t.
func (s Step) next(t time.Time) time.Time { return s.at(s.index(t) + 1) }

// size returns the length of a step of days or seconds, in seconds. Wall-clock
// days have 24 hours.
func (s Step) size() int64 { return int64(s.Days)*24*3600 + int64(s.Seconds) }
