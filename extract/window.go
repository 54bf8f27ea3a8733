package extract

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
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
func Earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// Dates names the window for people: "2026-01-01 00:00:00 to 2026-02-01 00:00:00".
func (w Window) Dates() string {
	switch {
	case w == Window{}:
		return "all dates"
	case w.From.IsZero():
		return "until " + w.To.Format(WireTime)
	case w.To.IsZero():
		return "from " + w.From.Format(WireTime) + " on"
	}
	return w.From.Format(WireTime) + " to " + w.To.Format(WireTime)
}

// place names the window before a page: "window 2026-01-01 …, ". It is "" for all dates.
func (w Window) place() string {
	if (w == Window{}) {
		return ""
	}
	return "window " + w.Dates() + ", "
}

// onWire formats a bound of a window as WireTime. It returns none if the bound is missing.
func onWire(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Format(WireTime)
}

// Period is a length of wall-clock time in months, days or seconds, of which one is greater than
// zero. Fixed windows, and partitions, begin at its boundaries: each begins where the one before
// ends. The zero Period is "auto": counts decide the size of windows.
type Period struct {
	Months, Days, Seconds int
}

// Auto tells whether windows are sized by counts.
func (p Period) Auto() bool { return p == Period{} }

// String returns the period as a definition has it: auto, 15m, 6h, 1d, 1mo.
func (p Period) String() string {
	switch {
	case p.Months > 0:
		return fmt.Sprintf("%dmo", p.Months)
	case p.Days > 0:
		return fmt.Sprintf("%dd", p.Days)
	case p.Seconds > 0 && p.Seconds%3600 == 0:
		return fmt.Sprintf("%dh", p.Seconds/3600)
	case p.Seconds > 0 && p.Seconds%60 == 0:
		return fmt.Sprintf("%dm", p.Seconds/60)
	case p.Seconds > 0:
		return fmt.Sprintf("%ds", p.Seconds)
	}
	return "auto"
}

// firstMonday anchors periods of days: 7d is a week that begins on Monday.
var firstMonday = time.Date(1969, 12, 29, 0, 0, 0, 0, time.UTC)

// periodIndex returns the number of the period that contains t. Periods of months count
// from the year 0, those of days and seconds from firstMonday.
func (p Period) periodIndex(t time.Time) int64 {
	if p.Months > 0 {
		return int64((t.Year()*12 + int(t.Month()) - 1) / p.Months)
	}
	since, size := t.Unix()-firstMonday.Unix(), p.size()
	return (since - (since%size+size)%size) / size
}

// periodStart returns the time at which the period with this index begins.
func (p Period) periodStart(index int64) time.Time {
	if p.Months > 0 {
		return time.Date(0, time.Month(int(index)*p.Months+1), 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Unix(firstMonday.Unix()+index*p.size(), 0).UTC()
}

// Start returns the period's boundary at or before t.
func (p Period) Start(t time.Time) time.Time { return p.periodStart(p.periodIndex(t)) }

// next returns the period's first boundary after t.
func (p Period) next(t time.Time) time.Time { return p.periodStart(p.periodIndex(t) + 1) }

// size returns the length of a period of days or seconds, in seconds. Wall-clock
// days have 24 hours.
func (p Period) size() int64 { return int64(p.Days)*24*3600 + int64(p.Seconds) }

// Halving finds by counts where in a span of time or ids something lies: windows of a bounded
// size, results that are missing, results that are gone, or results that have no date.
type Halving[S any] struct {
	// Visit is given a span and its count n, and tells whether to look into the span's halves.
	// exact tells that the service was asked for this count. Otherwise the count is the difference
	// of two counts, and the form may have changed between these.
	Visit func(ctx context.Context, span S, n int64, exact bool) (deeper bool, err error)
	// Divide divides a span for which Visit returned true, and counts its lower half.
	Divide func(ctx context.Context, span S) (lower, upper S, inLower int64, err error)
	// AtOnce visits both halves of a span at once; Visit and Divide must then be safe for
	// concurrent use.
	AtOnce bool
}

// Halve visits a span with the count n, and then its halves where Visit asks for that. The upper
// half's count is n minus that of the lower half.
func (h Halving[S]) Halve(ctx context.Context, span S, n int64, exact bool) error {
	deeper, err := h.Visit(ctx, span, n, exact)
	if err != nil || !deeper {
		return err
	}
	lower, upper, inLower, err := h.Divide(ctx, span)
	if err != nil {
		return err
	}
	halves, ctx := errgroup.WithContext(ctx)
	if !h.AtOnce {
		halves.SetLimit(1) // the upper half is begun when the lower half has ended
	}
	halves.Go(func() error { return h.Halve(ctx, lower, inLower, true) })
	halves.Go(func() error { return h.Halve(ctx, upper, n-inLower, false) })
	return halves.Wait()
}
