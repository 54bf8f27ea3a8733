package extract

import (
	"fmt"
	"time"
)

// Step is the size of fixed windows: so many months, days or seconds of
// wall-clock time, exactly one of them greater than zero. The zero Step is
// "auto": windows are sized by counts.
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

// start returns the step's boundary at or before t. Boundaries are fixed to
// the calendar: months to the year 0, days to a Monday, seconds to a midnight.
func (s Step) start(t time.Time) time.Time {
	if s.Months > 0 {
		m := t.Year()*12 + int(t.Month()) - 1
		m -= m % s.Months
		return time.Date(m/12, time.Month(m%12+1), 1, 0, 0, 0, 0, time.UTC)
	}
	since, size := t.Sub(firstMonday), s.size()
	return t.Add(-((since%size + size) % size))
}

func (s Step) next(t time.Time) time.Time {
	b := s.start(t)
	if s.Months > 0 {
		return b.AddDate(0, s.Months, 0)
	}
	return b.Add(s.size())
}

// size is that of a step of days or seconds. Wall-clock days have 24 hours.
func (s Step) size() time.Duration {
	return time.Duration(s.Days)*24*time.Hour + time.Duration(s.Seconds)*second
}
