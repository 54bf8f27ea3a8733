package extract

import (
	"fmt"
	"time"
)

// Step is the size of fixed windows in months, days or seconds of wall-clock
// time. One of them is greater than zero. The zero Step is "auto": counts
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

// at returns where the step with an index begins.
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
