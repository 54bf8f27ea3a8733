package extract

import "time"

// WireTime is the layout of every date on the wire: wall-clock time of the
// account's zone, one-second resolution, no offset (specification, section 4.5).
const WireTime = "2006-01-02 15:04:05"

// Window is a half-open span [From, To) of wall-clock time in the account's zone,
// in whole seconds. Its times are stored as UTC but are no instants. So a DST
// change can neither lose nor double a result. A zero From or To means no bound.
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

// Overlaps tells whether the windows have time in common.
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

// place names the window before a page for people: "window 2026-01-01 …, ". It is "" for
// the window without bounds.
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

// onWire formats a bound. It returns none if the bound is missing.
func onWire(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Format(WireTime)
}
