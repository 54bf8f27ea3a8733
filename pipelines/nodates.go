package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/interval"
)

// Where the service ignores dates there is one window: all that the form holds.
// A run that wants all reads that. One that was asked for a range, or is to
// divide the results by time, cannot be what it is to be, and fails.

// datesIgnored is the drift that a run reports which left dates out.
const datesIgnored = "the service ignores fs_min_date and fs_max_date: all results are read as one window, without dates"

// DatesIgnoredError is a run that needs dates, on a service that ignores them.
type DatesIgnoredError struct {
	Range     extract.Window // that was to be read
	Partition bool           // it is the partitions that need dates, not the range
	Err       error          // what showed that dates are ignored
}

// Error says why the run cannot be and what to do.
func (e *DatesIgnoredError) Error() string {
	if e.Partition {
		return fmt.Sprintf("%v; so the results cannot be divided by time: leave `partition` out; nothing was written", e.Err)
	}
	return fmt.Sprintf("%v; so the range %s cannot be read: leave from and to out (of the definition, --from and --to), and mode: incremental, to read all results; nothing was written", e.Err, e.Range)
}

// Unwrap returns what showed it.
func (e *DatesIgnoredError) Unwrap() error { return e.Err }

// DataFault is true: the service cannot give what was asked for.
func (e *DatesIgnoredError) DataFault() bool { return true }

// wantsAll tells whether the run is to give all results up to now, in places
// that need not be divided by time.
func (f *formRun) wantsAll() bool {
	begins := !f.iv.Read.From.IsZero() || f.hasFiles() && !f.iv.Asked.From.IsZero()
	if begins || !interval.Given(f.def.Extract, f.o.flags()).To.IsZero() || f.def.FinestUnit() != extract.UnitNone {
		return false
	}
	for _, d := range f.datasets() {
		_, kept := d.replaced()
		if slices.ContainsFunc(kept, func(p load.Part) bool { return !p.Undated }) {
			return false // they hold what would be read again
		}
	}
	return true
}

// leavesDatesOut tells whether a run that failed is to begin again without
// dates, because the service ignores them and all is wanted anyway.
func (f *formRun) leavesDatesOut(err error) bool {
	return isError[*extract.DatesError](err) && !isError[*DatesIgnoredError](err) && !f.dateless
}

// needsDates makes an error that says what to do of one that tells that the
// service ignores dates, where the run cannot do without them.
func (f *formRun) needsDates(err error) error {
	ignored, ok := errors.AsType[*extract.DatesError](err)
	if !ok || f.wantsAll() {
		return err
	}
	return &DatesIgnoredError{Range: f.iv.Read, Partition: f.def.FinestUnit() != extract.UnitNone && f.iv.Everything(), Err: ignored}
}

// withoutDates is the same run once more, without dates. What it costs is
// counted with what was spent so far.
func (f *formRun) withoutDates(ctx context.Context) *formRun {
	f.log.LogAttrs(ctx, slog.LevelWarn, datesIgnored)
	again := newFormRun(f.def, f.o, f.client, f.form)
	again.client = f.client
	again.reader = again.newReader()
	again.report.StartedAt = f.report.StartedAt
	again.dateless = true
	again.reader.LeaveDatesOut()
	again.drift(datesIgnored)
	return again
}

// wholeRange is how all results are read as one window.
func wholeRange(span extract.Window, uncounted bool) extract.Range {
	return extract.Range{Window: span, Target: math.MaxInt, Uncounted: uncounted}
}
