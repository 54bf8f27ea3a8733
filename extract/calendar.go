package extract

import "time"

// Calendar boundaries are where windows are cut. They depend on the calendar
// alone, never on where a range begins or ends. So two runs with different
// ranges cut at the same times.

// Unit is a calendar unit that always cuts: a partition's.
type Unit uint8

// The units.
const (
	UnitNone Unit = iota
	UnitDay
	UnitMonth
	UnitYear
)

// Start returns the beginning of the unit that holds t; t itself for UnitNone.
func (u Unit) Start(t time.Time) time.Time {
	switch u {
	case UnitDay:
		return midnight(t)
	case UnitMonth:
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	case UnitYear:
		return time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// next returns the beginning of the unit after the one that holds t.
func (u Unit) next(t time.Time) time.Time {
	s := u.Start(t)
	switch u {
	case UnitDay:
		return s.AddDate(0, 0, 1)
	case UnitMonth:
		return s.AddDate(0, 1, 0)
	}
	return s.AddDate(1, 0, 0)
}

// spans returns how many units the window touches; 1 for UnitNone.
func (u Unit) spans(from, to time.Time) int {
	last := to.Add(-second)
	switch u {
	case UnitDay:
		return int(midnight(last).Sub(midnight(from))/(24*time.Hour)) + 1
	case UnitMonth:
		return (last.Year()-from.Year())*12 + int(last.Month()) - int(from.Month()) + 1
	case UnitYear:
		return last.Year() - from.Year() + 1
	}
	return 1
}

// cut divides [from, to) at the unit's boundaries.
func (u Unit) cut(from, to time.Time) []Window {
	if u == UnitNone {
		return []Window{{from, to}}
	}
	var ws []Window
	for from.Before(to) {
		end := u.next(from)
		if end.After(to) {
			end = to
		}
		ws = append(ws, Window{from, end})
		from = end
	}
	return ws
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// Epoch is before the date of any result: online forms are younger. It stands
// for "no lower bound" where a window has to be halved or undated results are to
// be left out.
var Epoch = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// level gives the first boundary of one calendar level after t.
type level func(t time.Time) time.Time

// levels runs from coarse to fine; every level's boundaries are boundaries of
// all finer ones, so the cuts form a tree.
var levels = [...]level{
	years(64), years(32), years(16), years(8), years(4), years(2), years(1),
	months(6), months(3), months(1),
	days(16), days(8), days(4), days(2), days(1),
	seconds(12 * 3600), seconds(6 * 3600), seconds(3 * 3600), seconds(3600),
	seconds(1800), seconds(900), seconds(300), seconds(60), seconds(30), seconds(15), seconds(5), seconds(1),
}

func years(n int) level {
	return func(t time.Time) time.Time {
		return time.Date(t.Year()/n*n+n, 1, 1, 0, 0, 0, 0, time.UTC)
	}
}

func months(n int) level {
	return func(t time.Time) time.Time {
		return time.Date(t.Year(), time.Month((int(t.Month())-1)/n*n+n+1), 1, 0, 0, 0, 0, time.UTC)
	}
}

// days counts within the month: 1, 1+n, 1+2n and so on, then the next month.
func days(n int) level {
	return func(t time.Time) time.Time {
		next := time.Date(t.Year(), t.Month(), (t.Day()-1)/n*n+n+1, 0, 0, 0, 0, time.UTC)
		if first := time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC); next.After(first) {
			return first
		}
		return next
	}
}

// seconds divides a day; n divides 86,400.
func seconds(n int) level {
	return func(t time.Time) time.Time {
		of := t.Hour()*3600 + t.Minute()*60 + t.Second()
		return midnight(t).Add(time.Duration(of/n*n+n) * second)
	}
}

// halve returns the coarsest calendar boundary strictly inside the window,
// the one nearest its middle where a level has several; false for a window of
// one second.
func halve(from, to time.Time) (time.Time, bool) {
	middle := from.Add(to.Sub(from) / 2)
	for _, next := range levels {
		first := next(from)
		if !first.Before(to) {
			continue
		}
		best := first
		for b := next(first); b.Before(to); b = next(b) {
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
