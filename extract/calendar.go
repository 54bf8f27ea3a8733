package extract

import "time"

// Windows are cut at boundaries of the calendar. These boundaries do not depend on
// where a range begins or ends, so two runs with different ranges cut at the same times.

// Unit is the calendar unit of a partition. A plan always cuts windows at the unit's boundaries.
type Unit uint8

// The units.
const (
	UnitNone Unit = iota
	UnitDay
	UnitMonth
	UnitYear
)

// period returns the period of the unit. That of UnitNone is auto, without boundaries.
func (u Unit) period() Period {
	return [...]Period{UnitDay: {Days: 1}, UnitMonth: {Months: 1}, UnitYear: {Months: 12}}[u]
}

// Start returns the beginning of the unit that holds t; t itself for UnitNone.
func (u Unit) Start(t time.Time) time.Time {
	if u == UnitNone {
		return t
	}
	return u.period().Start(t)
}

// Next returns the beginning of the unit after the one that holds t; t itself for UnitNone.
func (u Unit) Next(t time.Time) time.Time {
	if u == UnitNone {
		return t
	}
	return u.period().next(t)
}

// Spans returns how many units a window touches; 1 for UnitNone.
func (u Unit) Spans(w Window) int {
	if u == UnitNone {
		return 1
	}
	return int(u.period().periodIndex(w.To.Add(-time.Second))-u.period().periodIndex(w.From)) + 1
}

// tile divides the window rest at the boundaries of all periods; an auto period has no boundaries.
// tile stops after more than maxWindows windows.
func tile(rest Window, periods ...Period) (ws []Window) {
	for rest.From.Before(rest.To) && len(ws) <= maxWindows {
		next := rest
		for _, s := range periods {
			if !s.Auto() {
				next.To = Earlier(next.To, s.next(rest.From))
			}
		}
		ws, rest.From = append(ws, next), next.To
	}
	return ws
}

// Epoch is before the date of any result. It is the lower bound where a window
// without one is halved, or where results without a date are to be left out.
var Epoch = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// levels holds the calendar units for halving windows, from 64 years to a second, as
// functions that return the first boundary after t. Each unit's boundaries are also
// boundaries of all finer units, so the cuts form a tree.
var levels = [...]func(t time.Time) time.Time{
	years(64), years(32), years(16), years(8), years(4), years(2), years(1),
	months(6), months(3), months(1),
	days(16), days(8), days(4), days(2), days(1),
	seconds(12 * 3600), seconds(6 * 3600), seconds(3 * 3600), seconds(3600),
	seconds(1800), seconds(900), seconds(300), seconds(60), seconds(30), seconds(15), seconds(5), seconds(1),
}

func years(n int) func(t time.Time) time.Time { return months(12 * n) }

func months(n int) func(t time.Time) time.Time { return Period{Months: n}.next }

func seconds(n int) func(t time.Time) time.Time { return Period{Seconds: n}.next }

// days returns a function for the boundaries within a month, on day 1, 1+n, 1+2n and so on.
func days(n int) func(t time.Time) time.Time {
	return func(t time.Time) time.Time {
		next := time.Date(t.Year(), t.Month(), (t.Day()-1)/n*n+n+1, 0, 0, 0, 0, time.UTC)
		if month := UnitMonth.period().next(t); next.After(month) {
			return month
		}
		return next
	}
}

// halve returns the coarsest calendar boundary strictly inside the window. Of
// several boundaries of one unit it takes the one nearest to the middle. It
// returns false for a window of one second.
func halve(w Window) (time.Time, bool) {
	middle := w.From.Add(w.To.Sub(w.From) / 2)
	for _, next := range levels {
		first := next(w.From)
		if !first.Before(w.To) {
			continue
		}
		best := first
		for b := next(first); b.Before(w.To); b = next(b) {
			if distance(b, middle) >= distance(best, middle) {
				break
			}
			best = b
		}
		return best, true
	}
	return time.Time{}, false
}

func distance(a, b time.Time) time.Duration { return a.Sub(b).Abs() }
