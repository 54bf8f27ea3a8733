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

// wantsAll tells whether a run is to give all results up to now, in places that
// need not be divided by time.
func wantsAll(def *definition.Definition, flags interval.Flags, i interval.Interval, outputs *output.Set) bool {
	begins := !i.Read.From.IsZero() || outputs.HasFiles() && !i.Asked.From.IsZero()
	if begins || !interval.Given(def.Extract, flags).To.IsZero() || def.FinestUnit() != extract.UnitNone {
		return false
	}
	replaced := reconcile.Replaced{Read: i.Read, Undated: i.Everything(), Full: flags.Full}
	for _, m := range outputs.Manifests() {
		_, kept := replaced.Divide(m)
		if slices.ContainsFunc(kept, func(p load.Part) bool { return !p.Undated }) {
			return false // they hold what would be read again
		}
	}
	return true
}

// leavesDatesOut tells whether a run that failed is to begin again without
// dates, because the service ignores them and all is wanted anyway.
func (f *formRun) leavesDatesOut(err error) bool { return leavesDatesOut(err) && !f.reader.Dateless }

func leavesDatesOut(err error) bool {
	return isError[*extract.DatesError](err) && !isError[*DatesIgnoredError](err)
}

// needsDates makes an error that says what to do of one that tells that the
// service ignores dates, where the run cannot do without them.
func (f *formRun) needsDates(err error) error {
	return needsDates(err, f.reader.Def, f.o.Flags(), f.iv, f.outputs)
}

func needsDates(err error, def *definition.Definition, flags interval.Flags, i interval.Interval, outputs *output.Set) error {
	ignored, ok := errors.AsType[*extract.DatesError](err)
	if !ok || wantsAll(def, flags, i, outputs) {
		return err
	}
	return &DatesIgnoredError{Range: i.Read, Partition: def.FinestUnit() != extract.UnitNone && i.Everything(), Err: ignored}
}

// withoutDates is the same run once more, without dates. What it costs is
// counted with what was spent so far.
func (f *formRun) withoutDates(ctx context.Context) *formRun {
	f.reader.Log.LogAttrs(ctx, slog.LevelWarn, datesIgnored)
	again := newFormRun(f.reader.Def, f.o, f.reader.Client, f.reader.Name)
	again.report.StartedAt, again.reader.Began = f.report.StartedAt, f.report.StartedAt
	again.reader.Dateless = true
	again.reader.Pages.LeaveDatesOut()
	again.drift(datesIgnored)
	return again
}
