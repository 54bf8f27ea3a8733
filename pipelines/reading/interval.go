package reading

import (
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// The definition or flags say which span of time a run reads; without an end, it reads
// up to now. Where nothing bounds results by time or divides them, a run reads all of them
// without bounds of dates. An incremental run begins at the start of the day that lies
// `lookback` before the least watermark of its datasets. The parts of a dataset
// cover time without overlap, so the span is widened to whole parts. Thus
// lookback and backfill are the same operation. A run commits the end of what it
// read as watermark. The watermark never lies after the moment from which
// results may still change.
//
// All times are wall-clock times of the account's zone, held as times in UTC
// (see extract.Window). An interval is decided without requests, from definitions, clocks
// and manifests alone.

// How far apart two right clocks, and two zones, can be.
const (
	// ClockLeeway is the difference up to which two clocks count as equal: `settle` and
	// lookbacks make up for it.
	ClockLeeway = time.Minute
	// WidestZone is more than any two zones of the world differ by.
	WidestZone = 26 * time.Hour
)

// Interval says which span of time a run reads.
type Interval struct {
	Given extract.Window // what the user asked for; a missing bound is zero
	Asked extract.Window // Given with its end filled in
	Read  extract.Window // Asked, widened to whole parts of datasets
	// Complete is an upper bound of the watermark. Results before that time no longer
	// changed by themselves when the oldest piece was requested.
	Complete time.Time
	// Continues tells whether the run continues the watermarks of its datasets.
	Continues bool
	// Next is where the next incremental run begins. It is zero if that is not known.
	Next time.Time
}

// RangeFlags holds the settings of the command line for the interval.
type RangeFlags struct {
	From, To time.Time // override the definition's bounds unless zero
	Full     bool      // ignore watermarks and replace whole datasets
	// Beyond is used as the end of a range that was given none, if results are dated later
	// than now because a clock or the zone is wrong. It is zero if there are no such results.
	Beyond time.Time
}

// RangeError reports a range that is empty or ends before it begins.
type RangeError struct {
	Window  extract.Window
	Endless bool // the range was given no end, so that it ends now, less `settle`
}

// Error gives the range, and why it holds no time.
func (e *RangeError) Error() string {
	if e.Endless {
		return fmt.Sprintf("the range is empty: it begins at %s and ends at %s (now, less `settle`): give an earlier `from`",
			e.Window.From.Format(extract.WireTime), e.Window.To.Format(extract.WireTime))
	}
	return fmt.Sprintf("the range %s is empty: `to` must be later than `from`", e.Window.Dates())
}

// ExitCode returns 78, an error of the definition or flags, because they name the range.
func (e *RangeError) ExitCode() int { return 78 }

// NewInterval returns the interval for a run at the instant now, before anything is
// known about the outputs. The error is a *RangeError.
func NewInterval(def *definition.Definition, flags RangeFlags, now time.Time) (Interval, error) {
	i := Interval{Given: Given(def.Extract, flags), Complete: Settled(def, now)}
	i.Asked = i.Given
	if i.Asked.To.IsZero() && !needsNoDates(def, i.Given) {
		i.Asked.To = extract.Later(i.Complete, flags.Beyond)
	}
	if !i.Asked.From.IsZero() && !i.Asked.From.Before(i.Asked.To) {
		return i, &RangeError{Window: i.Asked, Endless: i.Given.To.IsZero()}
	}
	i.Read = i.Asked
	return i, nil
}

// needsNoDates tells whether a run may ask for results without bounds of dates, because it
// writes all results of a form to single files. A dataset is divided by time, or may be later.
func needsNoDates(def *definition.Definition, given extract.Window) bool {
	return given == extract.Window{} && !def.Extract.Incremental && def.Extract.Window.Auto() && !slices.ContainsFunc(def.Outputs, definition.Output.Dataset)
}

// Given returns the span that flags or the definition set. A missing bound is zero.
func Given(e definition.Extract, flags RangeFlags) extract.Window {
	w := extract.Window{From: e.From, To: e.To}
	if !flags.From.IsZero() {
		w.From = flags.From
	}
	if !flags.To.IsZero() {
		w.To = flags.To
	}
	return w
}

// Settled returns the time before which results no longer change, as seen at
// the instant at. It is in the account's wall-clock time. Where clocks went forward within
// `settle`, it is what they showed before; where they went back, less than they showed since.
func Settled(def *definition.Definition, at time.Time) time.Time {
	before := load.Wall(at.Add(-def.Extract.Settle).In(def.Source.Zone)).Time
	return extract.Earlier(before, load.Wall(at.In(def.Source.Zone)).Add(-def.Extract.Settle))
}

// Behind lowers Complete by how far the service's clock is behind ours. So the watermark never
// passes the service's clock. now is the time by our clock, in the account's zone. If the
// zone's clocks were put forward in between, the wall-clock times differ by an hour more.
func (i Interval) Behind(by time.Duration, now time.Time) Interval {
	if by > ClockLeeway {
		shown := load.Wall(now).Sub(load.Wall(now.Add(-by)).Time)
		i.Complete = i.Complete.Add(-max(by, shown))
	}
	return i
}

// Everything tells whether the interval has no given bound. If so, the run also
// reads results without a date.
func (i Interval) Everything() bool { return i.Given == extract.Window{} }

// Widened says why a run reads more than the range that it was given, "" if it does not.
func (i Interval) Widened() string {
	if i.Continues || i.Read == i.Asked {
		return ""
	}
	return "the run reads more than the range that was given, because it replaces whole parts of the outputs"
}

// Unbounded tells whether the run asks for all results at once, without bounds of dates.
func (i Interval) Unbounded() bool { return i.Read == extract.Window{} }

// Endless tells whether the range was given no end. Then results may be dated after the end
// that formetl chose.
func (i Interval) Endless() bool { return i.Given.To.IsZero() && !i.Unbounded() }

// Decide returns the interval that the run reads. committed are the manifests of the
// datasets, nil for a dataset that no run has committed. oldest is when the
// oldest piece was requested that the run may take over, zero if there is no such piece.
func (i Interval) Decide(def *definition.Definition, flags RangeFlags, committed []*load.Manifest, oldest time.Time) Interval {
	if !oldest.IsZero() {
		i.Complete = extract.Earlier(i.Complete, Settled(def, oldest))
	}
	if def.Extract.Incremental && !flags.Full && flags.From.IsZero() {
		if w := LeastWatermark(committed); !w.IsZero() {
			i.Asked.From = Since(def.Extract, w, i.Asked.To)
			i.Given.From, i.Continues = i.Asked.From, true
		}
	}
	if i.Endless() {
		for _, m := range committed {
			for _, p := range partsOf(m) { // an earlier run met results that are dated later than now
				i.Asked.To = extract.Later(i.Asked.To, p.To.Time)
			}
		}
	}
	i.Read = Widen(i.Asked, committed, flags.Full)
	if def.Extract.Incremental && !slices.ContainsFunc(committed, func(m *load.Manifest) bool { return m != nil && i.reached().Before(m.Watermark.Time) }) {
		i.Next = nextStart(i.reached(), def.Extract.Lookback)
	}
	return i
}

func partsOf(m *load.Manifest) []load.Part {
	if m == nil {
		return nil
	}
	return m.Parts
}

// DatasetTime returns the time of all results that datasets should hold, in whole parts.
func (i Interval) DatasetTime(def *definition.Definition, committed []*load.Manifest) extract.Window {
	return Widen(extract.Window{From: def.Extract.From, To: i.Read.To}, committed, false)
}

// smallPart is how many results the last part may have so that a run reads it again
// together with new ones. Otherwise each run would add a part.
const smallPart = 200

// SinceWatermark returns the interval of a run that reads from the least watermark on, because it
// knows which of the results before that time changed. With join the interval begins at the
// start of the last part, if that part is small, no partition ends after it, and the datasets
// should hold it. The interval is empty, and lies at the watermark, if the run's end is the
// watermark.
func (i Interval) SinceWatermark(def *definition.Definition, committed []*load.Manifest, join bool) Interval {
	tail := i
	// A watermark may have been reset to before the range.
	tail.Asked.From = extract.Later(LeastWatermark(committed), def.Extract.From)
	if tail.Asked.From.Equal(i.Asked.To) {
		tail.Read, tail.Given.From = tail.Asked, tail.Asked.From
		return tail
	}
	if tail.Asked.From.After(i.Asked.To) { // the clock was set back
		tail.Asked.From = i.Asked.To.Add(-time.Second)
	}
	tail.Read = Widen(tail.Asked, committed, false)
	if join {
		if joined := lastPart(tail.Asked.From, def.FinestUnit(), committed); !joined.IsZero() {
			whole := Widen(extract.Window{From: joined, To: i.Asked.To}, committed, false)
			due := tail.DatasetTime(def, committed)
			if ResultsIn(whole, committed) <= smallPart && !whole.From.Before(due.From) {
				tail.Asked.From, tail.Read = joined, whole
			}
		}
	}
	tail.Given.From = tail.Asked.From
	return tail
}

// lastPart returns the beginning of the last part that ends before a time and lies in the same
// partition as that time. It is zero if there is no such part.
func lastPart(before time.Time, unit extract.Unit, committed []*load.Manifest) (begins time.Time) {
	for _, m := range committed {
		for _, p := range partsOf(m) {
			sameUnit := unit == extract.UnitNone || unit.Start(p.To.Add(-time.Second)).Equal(unit.Start(before))
			if !p.Undated && !p.To.After(before) && sameUnit && begins.Before(p.From.Time) {
				begins = p.From.Time
			}
		}
	}
	return begins
}

// ResultsIn returns how many results the parts in a window stand for, rejected ones included,
// in the dataset that has most results there.
func ResultsIn(w extract.Window, committed []*load.Manifest) (most int64) {
	for _, m := range committed {
		var n int64
		hit, _, _ := load.Intersecting(partsOf(m), load.Span(w.From, w.To))
		for _, p := range hit {
			n += p.Rows + p.Rejected
		}
		most = max(most, n)
	}
	return most
}

// LeastWatermark returns the least watermark of the manifests, or zero if a dataset has none.
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

// Since returns the start of a run that continues a watermark and ends at `to`. The start
// lies before `to` even if the clock was set back meanwhile.
func Since(e definition.Extract, watermark, to time.Time) time.Time {
	from := nextStart(extract.Earlier(watermark, to), e.Lookback)
	if from.Before(e.From) {
		return e.From
	}
	return from
}

// clockSlack is the shortest lookback that runs use. Clocks may be wrong by minutes, and so
// may watermarks.
const clockSlack = time.Hour

// nextStart returns the start of a run that continues this watermark: the start of the day
// that lies lookback before it.
func nextStart(watermark time.Time, lookback time.Duration) time.Time {
	return extract.UnitDay.Start(watermark.Add(-max(lookback, clockSlack)))
}

// Widen extends a span to whole parts of all datasets. With full it extends the
// span to all parts that have a date.
func Widen(w extract.Window, committed []*load.Manifest, full bool) extract.Window {
	before := w
	for _, m := range committed {
		_, rest, whole := load.Intersecting(partsOf(m), load.Span(w.From, w.To))
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
		w = extract.Window{From: whole.From.Time, To: whole.To.Time}
	}
	if w != before {
		return Widen(w, committed, full) // the wider span may meet more parts of the first datasets
	}
	return w
}

// reached returns the time up to which the run's results are complete. It never
// lies in the future, although a range may end there. Nor does it lie after the
// time of the oldest piece taken over from a checkpoint. Results of that piece
// may have been edited since, and the next run's lookback must reach them.
func (i Interval) reached() time.Time {
	if i.Unbounded() {
		return i.Complete
	}
	return extract.Earlier(i.Read.To, i.Complete)
}

// Watermark returns the time up to which a dataset has results without a gap after
// this run. before is the dataset's earlier watermark. The watermark never falls,
// and rises only if the run began at or before it. A dataset without a watermark gets one
// only if the run began at or before the start of the definition's range.
func (i Interval) Watermark(e definition.Extract, before load.WallTime) load.WallTime {
	from, to := i.Read.From, load.Wall(i.reached())
	switch {
	case before.IsZero():
		if !from.IsZero() && (e.From.IsZero() || from.After(e.From)) {
			return before
		}
	case from.After(extract.Later(before.Time, e.From)) || to.Before(before.Time):
		return before
	}
	return to
}
