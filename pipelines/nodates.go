package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// Where the service ignores dates, there is one window that holds all results of
// the form. A run of all results reads that window. A run of a range, or one that
// divides its outputs by time, fails.

// datesIgnored is the drift that a run without dates reports.
const datesIgnored = "the service ignores fs_min_date and fs_max_date: all results are read as one window, without dates"

// DatesIgnoredError is a run that needs dates, on a service that ignores them.
type DatesIgnoredError struct {
	Range     extract.Window // the range that was asked for
	Partition bool           // the partitions need dates, not the range
	Err       error          // what showed that dates are ignored
}

// Error says why the run fails and what to do.
func (e *DatesIgnoredError) Error() string {
	if e.Partition {
		return fmt.Sprintf("%v; so the results cannot be divided by time: leave `partition` out; nothing was written", e.Err)
	}
	return fmt.Sprintf("%v; so the range %s cannot be read: leave from and to out (of the definition, --from and --to), and mode: incremental, to read all results; nothing was written", e.Err, e.Range)
}

// Unwrap returns the error that showed it.
func (e *DatesIgnoredError) Unwrap() error { return e.Err }

// DataFault is true: the service cannot give what was asked for.
func (e *DatesIgnoredError) DataFault() bool { return true }

// wantsAll tells whether a run is asked for all results up to now, at outputs that
// are not divided by time.
func wantsAll(def *definition.Definition, flags interval.Flags, i interval.Interval, outputs *output.Set) bool {
	begins := !i.Read.From.IsZero() || outputs.HasFiles() && !i.Asked.From.IsZero()
	if begins || !interval.Given(def.Extract, flags).To.IsZero() || def.FinestUnit() != extract.UnitNone {
		return false
	}
	replaced := reconcile.Replaced{Read: i.Read, Undated: i.Everything(), Full: flags.Full}
	for _, m := range outputs.Manifests() {
		_, kept := replaced.Divide(m)
		if slices.ContainsFunc(kept, func(p load.Part) bool { return !p.Undated }) {
			return false // the part's results would be there twice
		}
	}
	return true
}

// leavesDatesOut tells whether a run that failed begins again without dates: the
// service ignores them, and the run needs none.
func leavesDatesOut(err error) bool {
	return isError[*extract.DatesError](err) && !isError[*DatesIgnoredError](err)
}

// needsDates replaces the error of a service that ignores dates by one that says
// what to do, where the run cannot do without dates.
func needsDates(err error, def *definition.Definition, flags interval.Flags, i interval.Interval, outputs *output.Set) error {
	ignored, ok := errors.AsType[*extract.DatesError](err)
	if !ok || wantsAll(def, flags, i, outputs) {
		return err
	}
	return &DatesIgnoredError{Range: i.Read, Partition: def.FinestUnit() != extract.UnitNone && i.Everything(), Err: ignored}
}

// withoutDates gives the same run once more, without dates.
func (f *formRun) withoutDates(ctx context.Context) *formRun {
	f.reader.Log.LogAttrs(ctx, slog.LevelWarn, datesIgnored)
	again := f.again()
	again.reader.Dateless = true
	again.reader.Pages.LeaveDatesOut()
	again.drift(datesIgnored)
	return again
}
