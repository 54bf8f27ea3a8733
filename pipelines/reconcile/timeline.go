package reconcile

import (
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reading"
)

// The time of a dataset consists of the windows that the run reads, the parts that it
// keeps, and the gaps between them.

// placeOf returns the part, or the gap between parts, that holds a date and that the
// run does not read. A gap ends at the boundaries of the finest partition.
func (c *Reconciler) placeOf(date time.Time) (place extract.Window, ok bool) {
	whole := c.whole()
	if !whole.Holds(date) {
		return place, false
	}
	place = whole
	if unit := c.Reader.Def.FinestUnit(); unit != extract.UnitNone {
		cell := extract.Window{From: unit.Start(date), To: unit.Next(date)}
		place = extract.Window{From: extract.Later(place.From, cell.From), To: extract.Earlier(place.To, cell.To)}
	}
	for _, s := range c.timeline() {
		switch {
		case s.gap:
		case s.Window.Holds(date):
			return s.Window, s.window == nil
		case s.To.After(date):
			place.To = extract.Earlier(place.To, s.From)
		default:
			place.From = extract.Later(place.From, s.To)
		}
	}
	return place, true
}

// span is a stretch of the datasets' time as it will be after this run.
type span struct {
	extract.Window
	results int64           // that are held there
	window  *reading.Window // that the run reads; nil for a kept part or a gap
	gap     bool            // no part and no window is there
}

// whole returns the time of all results that the datasets should hold.
func (c *Reconciler) whole() extract.Window {
	return c.Interval.Whole(c.Reader.Def, manifestsOf(c.Parts))
}

// timeline returns the spans of the first dataset; without one, those of the windows.
func (c *Reconciler) timeline() []span {
	for _, m := range wholeOf(c.Parts) {
		return c.timelineOf(m)
	}
	return c.timelineOf(nil)
}

// timelineOf returns the time of a dataset in order: the windows that the run
// reads, the parts that it keeps, and the gaps between them. Only a run that
// continues the datasets knows that gaps belong to them.
func (c *Reconciler) timelineOf(m *load.Manifest) (line []span) {
	whole := c.whole()
	for _, w := range c.Windows {
		if w.Undated == nil && w.Planned.Window.Overlaps(whole) {
			line = append(line, span{Window: w.Planned.Window, results: w.Results(), window: w})
		}
	}
	_, kept := c.Replaced().Divide(m)
	for _, p := range kept {
		if w := windowOf(p); !p.Undated && w.Overlaps(whole) {
			if n := len(line); n > 0 && line[n-1].window == nil && line[n-1].Window == w { // one part of several objects
				line[n-1].results += p.Rows + p.Rejected
				continue
			}
			line = append(line, span{Window: w, results: p.Rows + p.Rejected})
		}
	}
	slices.SortStableFunc(line, func(a, b span) int { return a.From.Compare(b.From) })
	if c.Changes == nil || !c.Changes.Continues {
		return line
	}
	var gaps []span
	at := whole.From
	for _, s := range line {
		if at.Before(s.From) {
			gaps = append(gaps, span{Window: extract.Window{From: at, To: s.From}, gap: true})
		}
		at = s.To
	}
	line = append(line, gaps...)
	slices.SortStableFunc(line, func(a, b span) int { return a.From.Compare(b.From) })
	return line
}
