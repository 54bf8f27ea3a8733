package pipelines

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// An incremental run begins at the start of the day that lies `lookback`
// before the watermark. A dataset is a set of disjoint parts that tile time, so
// such a run is a run over a range like any other: it replaces the parts that
// it touches. Results that moved in from parts that it does not touch are
// found by the sets of ids that parts keep, see older.go.

// sinceWatermark lets the range begin where results may have come or changed
// since the least watermark of the outputs. Where one of them has none, the
// run begins like the first. A range that was asked for by its beginning stays
// as it is.
func (f *formRun) sinceWatermark() {
	if !f.def.Extract.Incremental || f.full || !f.o.From.IsZero() {
		return
	}
	var manifests []*load.Manifest
	for _, d := range f.datasets() {
		manifests = append(manifests, d.manifest)
	}
	if w := leastWatermark(manifests); !w.IsZero() {
		f.own.From = sinceOf(f.def.Extract, w, f.own.To)
		f.asked.From = f.own.From
	}
}

// leastWatermark is the zero time where a manifest is missing or has none.
func leastWatermark(manifests []*load.Manifest) (least time.Time) {
	for i, m := range manifests {
		if m == nil || m.Watermark.IsZero() {
			return time.Time{}
		}
		if i == 0 || m.Watermark.Before(least) {
			least = m.Watermark.Time
		}
	}
	return least
}

// sinceOf is where a run up to `to` begins that goes on from a watermark. The
// clock may have been set back since: then it begins before `to` all the same.
func sinceOf(e definition.Extract, watermark, to time.Time) time.Time {
	from := nextStart(earlier(watermark, to), e.Lookback)
	if !from.Before(to) {
		from = extract.UnitDay.Start(last(to))
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

// reached is the time up to which the run's results are complete. It does not
// run ahead of the clock: of a range that ends in the future the results are
// still to come. Nor does it pass the time of the oldest piece that was taken
// over from a checkpoint: what that holds may have been edited since, and the
// next run's lookback is to meet it.
func (f *formRun) reached() time.Time { return earlier(f.rng.To, f.complete) }

// settleNext finds the time at which the next incremental run will begin. Parts
// end there, so that it need not read more than its range. A run over an
// earlier range has no such time.
func (f *formRun) settleNext() {
	if !f.def.Extract.Incremental {
		return
	}
	for _, d := range f.datasets() {
		if d.manifest != nil && f.reached().Before(d.manifest.Watermark.Time) {
			return
		}
	}
	f.next = nextStart(f.reached(), f.def.Extract.Lookback)
}

// watermark is the time up to which the dataset holds results without a gap.
// It never falls, and rises only if the run began at or before it; where there
// is none yet, at or before the beginning of the definition's range.
func (o *datasetOutput) watermark() load.WallTime {
	f := o.f
	from, to := f.rng.From, load.Wall(f.reached())
	before := load.WallTime{}
	if o.manifest != nil && (!f.full || o.changed() == nil) {
		before = o.manifest.Watermark
	}
	switch {
	case before.IsZero():
		if floor := f.def.Extract.From; !from.IsZero() && (floor.IsZero() || from.After(floor)) {
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
