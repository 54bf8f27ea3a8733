package detail

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// mostDays bounds the days of a form: eleven years.
const mostDays = 4018

// Day counts the results of a day, wall clock of the account's zone.
type Day struct {
	Day      time.Time // its midnight, stored as UTC
	Rows     int64
	Rejected int64 // only those of windows that lie within a day
}

// days counts results by day. Where a window lies within a day, the service says that the
// results do. Else a result counts for the day of its first date that lies in the window:
// date_finish comes before date_start, and both before other dates.
type days struct {
	by      map[time.Time]*Day
	dayless int64
}

// dateMetas ranks the metas that say when a result came; other dates come behind them.
var dateMetas = [...]string{"date_finish", "date_start"}

// dayOf returns the day that a window lies within, false if there is none.
func dayOf(window *reading.Window) (day time.Time, ok bool) {
	w := window.Planned.Window
	if window.Undated != nil || w.From.IsZero() || w.To.IsZero() || !w.From.Before(w.To) {
		return day, false
	}
	day = midnight(w.From)
	return day, midnight(w.To.Add(-time.Second)).Equal(day)
}

func midnight(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func (d *days) add(day time.Time, rows, rejected int64) {
	if d.by == nil {
		d.by = map[time.Time]*Day{}
	}
	at := d.by[day]
	if at == nil {
		if len(d.by) == mostDays {
			d.dayless += rows
			return
		}
		at = &Day{Day: day}
		d.by[day] = at
	}
	at.Rows, at.Rejected = at.Rows+rows, at.Rejected+rejected
}

// date is a column of a batch that may say when a result came.
type date struct {
	*array.Timestamp
	rank int
}

// appendDate adds a column of a batch to the dates if it is one, the best date first.
func appendDate(dates []date, from schemas.Source, column arrow.Array) []date {
	times, ok := column.(*array.Timestamp)
	if !ok || from.Kind != schemas.FromMeta || !strings.HasPrefix(from.ID, "date_") {
		return dates
	}
	d := date{times, slices.Index(dateMetas[:], from.ID)}
	if d.rank < 0 {
		d.rank = len(dateMetas)
	}
	at := slices.IndexFunc(dates, func(other date) bool { return other.rank > d.rank })
	if at < 0 {
		at = len(dates)
	}
	return slices.Insert(dates, at, d)
}

// rows counts n rows of a window that is longer than a day.
func (d *days) rows(w extract.Window, n int, dates []date, zone *time.Location) {
	for row := range n {
		day, ok := firstWithin(w, row, dates, zone)
		if !ok {
			d.dayless++
			continue
		}
		d.add(day, 1, 0)
	}
}

// firstWithin returns the day of the first date of a row that lies in a window.
func firstWithin(w extract.Window, row int, dates []date, zone *time.Location) (day time.Time, ok bool) {
	for _, d := range dates {
		if d.IsNull(row) {
			continue
		}
		at := load.Wall(d.Value(row).ToTime(arrow.Microsecond).In(zone)).Time
		if !at.Before(w.From) && (w.To.IsZero() || at.Before(w.To)) {
			return midnight(at), true
		}
	}
	return day, false
}

// list returns the days in order.
func (d *days) list() []Day {
	list := make([]Day, 0, len(d.by))
	for _, day := range d.by {
		list = append(list, *day)
	}
	slices.SortFunc(list, func(a, b Day) int { return a.Day.Compare(b.Day) })
	return list
}
