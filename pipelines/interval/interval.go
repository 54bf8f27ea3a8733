// Package interval decides which span of time a run reads and where the next one
// begins.
//
// A run is asked for a span: by the definition, by flags, or up to now. An
// incremental run begins at the start of the day that lies `lookback` before the
// least watermark of its datasets. A dataset is a set of disjoint parts that
// tile time, so the span is then widened to whole parts. So lookback and
// backfill are the same operation. The watermark that a run commits lies at the
// end of what it read, but never after the moment from which results may still
// change.
//
// All times are wall-clock times of the account's zone, held as times in UTC
// (see extract.Window). The package sends no requests: it knows definitions,
// clocks and manifests alone. Begin reading with Ask and Interval.Decide.
package interval

import (
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Interval says which span of time a run reads.
type Interval struct {
	Given extract.Window // as it was asked for: a bound that was left out is zero
	Asked extract.Window // the same with its end: what the run is to give
	Read  extract.Window // Asked, widened to the whole parts of datasets
	// Complete is an upper bound of the watermark. Results up to there no longer
	// changed by themselves when the oldest piece was asked for.
	Complete time.Time
	// Next is where the next incremental run begins; zero where that is not known.
	Next time.Time
}

// Flags are what a command line says about the interval.
type Flags struct {
	From, To time.Time // override those of the definition where they are not zero
	Full     bool      // watermarks are ignored, and whole datasets are replaced
}

// RangeError is a range that holds no time.
type RangeError struct{ Window extract.Window }

// Error names the range.
func (e *RangeError) Error() string {
	return fmt.Sprintf("the range %s holds no time: `to` is exclusive and must lie after `from`", e.Window)
}

// Ask gives the interval as it is asked for at an instant, before anything is
// known of the outputs. The error is a *RangeError.
func Ask(def *definition.Definition, flags Flags, now time.Time) (Interval, error) {
	i := Interval{Given: Given(def.Extract, flags), Complete: Settled(def, now)}
	i.Asked = i.Given
	if i.Asked.To.IsZero() {
		i.Asked.To = i.Complete
	}
	if !i.Asked.From.IsZero() && !i.Asked.From.Before(i.Asked.To) {
		return i, &RangeError{Window: i.Asked}
	}
	i.Read = i.Asked
	return i, nil
}

// Given is the span that was asked for; zero where it was left out.
func Given(e definition.Extract, flags Flags) extract.Window {
	w := extract.Window{From: e.From, To: e.To}
	if !flags.From.IsZero() {
		w.From = flags.From
	}
	if !flags.To.IsZero() {
		w.To = flags.To
	}
	return w
}

// Settled is the wall-clock time up to which results no longer change by
// themselves at an instant.
func Settled(def *definition.Definition, at time.Time) time.Time {
	return load.Wall(at.In(def.Source.Zone)).Add(-def.Extract.Settle)
}

// Everything tells whether no bound was asked for: then results without a date
// belong to the answer too.
func (i Interval) Everything() bool { return i.Given == extract.Window{} }

// Decide fixes what is read. committed are the manifests of the datasets, nil
// for one that no run has committed. oldest is when the oldest piece was asked
// for that the run may take over from a checkpoint, zero where there is none.
func (i Interval) Decide(def *definition.Definition, flags Flags, committed []*load.Manifest, oldest time.Time) Interval {
	if !oldest.IsZero() {
		i.Complete = earlier(i.Complete, Settled(def, oldest))
	}
	if def.Extract.Incremental && !flags.Full && flags.From.IsZero() {
		if w := LeastWatermark(committed); !w.IsZero() {
			i.Asked.From = Since(def.Extract, w, i.Asked.To)
			i.Given.From = i.Asked.From
		}
	}
	i.Read = Widen(i.Asked, committed, flags.Full)
	if def.Extract.Incremental && !slices.ContainsFunc(committed, func(m *load.Manifest) bool { return m != nil && i.reached().Before(m.Watermark.Time) }) {
		i.Next = nextStart(i.reached(), def.Extract.Lookback)
	}
	return i
}

// LeastWatermark is the zero time where a manifest is missing or has none.
func LeastWatermark(committed []*load.Manifest) (least time.Time) {
	for i, m := range committed {
		if m == nil || m.Watermark.IsZero() {
			return time.Time{}
		}
		if i == 0 || m.Watermark.Before(least) {
			least = m.Watermark.Time
		}
	}
	return least
}

// Since is where a run up to `to` begins that continues a watermark. The clock
// may have been set back since: then it begins before `to` all the same.
func Since(e definition.Extract, watermark, to time.Time) time.Time {
	from := nextStart(earlier(watermark, to), e.Lookback)
	if !from.Before(to) {
		from = extract.UnitDay.Start(to.Add(-time.Second))
	}
	if from.Before(e.From) {
		return e.From
	}
	return from
}

// clockSlack is the least lookback: clocks may be wrong by minutes, and a
// watermark by as much.
const clockSlack = time.Hour

// nextStart is where a run begins that finds this watermark.
func nextStart(watermark time.Time, lookback time.Duration) time.Time {
	return extract.UnitDay.Start(watermark.Add(-max(lookback, clockSlack)))
}

// Widen extends a span to the whole parts that it touches, of all datasets; with
// full to all their parts.
func Widen(w extract.Window, committed []*load.Manifest, full bool) extract.Window {
	for {
		before := w
		for _, m := range committed {
			if m != nil {
				w = widen(w, m.Parts, full)
			}
		}
		if w == before {
			return w
		}
	}
}

func widen(w extract.Window, parts []load.Part, full bool) extract.Window {
	_, rest, whole := load.Intersecting(parts, load.Span(w.From, w.To))
	for _, p := range rest {
		if !full || p.Undated {
			continue
		}
		if p.From.IsZero() || !whole.From.IsZero() && p.From.Before(whole.From.Time) {
			whole.From = p.From
		}
		if whole.To.Before(p.To.Time) {
			whole.To = p.To
		}
	}
	return extract.Window{From: whole.From.Time, To: whole.To.Time}
}

// reached is the time up to which the run's results are complete. It never lies
// in the future, where a range may end. Nor does it pass the time of the oldest
// piece that was taken over from a checkpoint. Its results may have been edited
// since, and the next run's lookback must reach them.
func (i Interval) reached() time.Time { return earlier(i.Read.To, i.Complete) }

// Watermark is the time up to which a dataset holds results without a gap, after
// a run over the interval. before is the one that it had. It never falls, and rises
// only if the run began at or before it. Where there was none, the run must have
// begun no later than the definition's range does.
func (i Interval) Watermark(e definition.Extract, before load.WallTime) load.WallTime {
	from, to := i.Read.From, load.Wall(i.reached())
	switch {
	case before.IsZero():
		if !from.IsZero() && (e.From.IsZero() || from.After(e.From)) {
			return before
		}
	case from.After(before.Time) || to.Before(before.Time):
		return before
	}
	return to
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
