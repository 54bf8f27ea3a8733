package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
)

// StateReport is what runs of a definition left for the next run.
type StateReport struct {
	Definition *definition.Definition
	Now        time.Time // when State looked, by this machine's clock
	Forms      []*FormState
	Budget     pipelines.Booked
	// Checkpoints tell what runs that ended early had read, the oldest first.
	Checkpoints []checkpoint.Unfinished
}

// FormState is what runs left at the outputs of one form, and where the next run begins.
type FormState struct {
	Form    string
	Outputs []*OutputState
	// Next is where the range of the next incremental run begins; the zero time is the first
	// result. It is nil if runs are not incremental, or if an output's state is not known.
	Next *load.WallTime
}

// OutputState is what runs left at one output.
type OutputState struct {
	Path    string // full path, with placeholders such as {form} replaced
	Dataset bool
	// PerRun tells that each run writes the output to a path of its own ({run_id}), so that the
	// next run finds nothing there.
	PerRun   bool
	Manifest *load.Manifest // manifest of the last commit; nil if there was no commit
	// Foreign tells that a single file is there without a manifest, so formetl may not have written it.
	Foreign bool
	load.Found
	// Inventory is how a listing of the dataset differs from its manifest: parts that are damaged
	// or missing, and parts that are not listed. It is empty while a run is under way or a commit
	// is not finished.
	Inventory load.Inventory
	Err       error // why the state of the output is not known, nil if it is
}

// Watermark returns up to where runs have read the dataset, in wall-clock time of the account's
// zone. It is zero if the output has no manifest or no watermark.
func (o *OutputState) Watermark() load.WallTime {
	if o.Manifest == nil {
		return load.WallTime{}
	}
	return o.Manifest.Watermark
}

// State returns what runs of a definition left for the next run: watermarks, runs under way or
// ended early, checkpoints, and the budget. It takes no lease and changes nothing. The service is
// asked for its list of forms only if the definition has globs. An output that fails does not stop
// the others: the error is a *pipelines.FormsError of *output.OutputsError then.
func State(ctx context.Context, def *definition.Definition, o pipelines.Options) (*StateReport, error) {
	o = o.WithDefaults()
	report := &StateReport{Definition: def, Now: o.Now()}
	told := map[string]bool{} // paths of leftovers that were reported: files in one folder share them
	forms, failed, err := eachForm(ctx, def, o, func(def *definition.Definition, form string) error {
		f := &FormState{Form: form}
		err := eachOutput(ctx, def, o, form, func(out definition.Output, place output.Location) error {
			at, err := look(ctx, o, out, place)
			at.Leftovers = once(told, at.Leftovers, func(l load.Leftover) string { return l.Path })
			at.Err = err
			f.Outputs = append(f.Outputs, at)
			return err
		})
		if err == nil {
			f.Next = nextBeginning(def, o, f.Outputs)
		}
		if ctx.Err() == nil {
			report.Forms = append(report.Forms, f)
		}
		return err
	})
	if err != nil {
		return report, err
	}
	report.Checkpoints, err = pipelines.Checkpoints(ctx, def, o, forms)
	failed.Add(err)
	report.Budget, err = pipelines.BudgetUse(ctx, def, o, report.Now)
	failed.Add(err)
	return report, failed.OrNil()
}

// look returns what runs left at one output, which lies at place. It changes nothing.
func look(ctx context.Context, o pipelines.Options, out definition.Output, place output.Location) (*OutputState, error) {
	at := &OutputState{Path: place.Path, Dataset: out.Dataset()}
	if at.PerRun = !out.Lasting(); at.PerRun {
		at.Path = out.Path
		return at, nil
	}
	if out.Database != nil {
		table, err := o.BuiltIn.OpenTable(place.Path, out.Database)
		if err == nil {
			at.Holder, err = table.Holder(ctx)
		}
		if err == nil {
			at.Manifest, _, err = table.Last(ctx)
		}
		return at, err
	}
	dest, err := o.BuiltIn.Open(ctx, place.Root, out)
	if err != nil {
		return at, err
	}
	// The manifest is read after load.Look, so that a commit in between is seen.
	at.Found, err = load.Look(ctx, dest, place.Scope)
	if err == nil {
		at.Manifest, _, err = output.ManifestAt(ctx, dest, place.Manifest, out)
	}
	if err == nil && !out.Dataset() && !out.NoManifest && at.Manifest == nil {
		_, missing := dest.Stat(ctx, place.Scope)
		at.Foreign = missing == nil
	}
	if err == nil && out.Dataset() && at.Holder == nil && at.Pending == "" {
		at.Inventory, err = load.TakeInventory(ctx, dest, at.Manifest)
	}
	if err != nil {
		return at, fmt.Errorf("%s: %w", at.Path, err)
	}
	return at, nil
}

// nextBeginning returns where the range of the next incremental run begins, unless that run resumes
// from a checkpoint. It returns nil if runs are not incremental.
func nextBeginning(def *definition.Definition, o pipelines.Options, outputs []*OutputState) *load.WallTime {
	if !def.Extract.Incremental {
		return nil
	}
	asked, err := reading.NewInterval(def, o.Flags(def), o.Now())
	if err != nil {
		return nil
	}
	var manifests []*load.Manifest
	for _, at := range outputs {
		if at.Dataset {
			manifests = append(manifests, at.Manifest)
		}
	}
	from := asked.Asked.From
	if w := reading.LeastWatermark(manifests); !w.IsZero() {
		from = reading.Since(def.Extract, w, asked.Asked.To)
	}
	return new(load.Wall(from))
}

// ResetReport is what ResetState did.
type ResetReport struct {
	Outputs []*ResetOutput
	// Checkpoints are the checkpoints that were discarded.
	Checkpoints []checkpoint.Unfinished
}

// ResetOutput is the path of a dataset, and how ResetState changed its watermark.
type ResetOutput struct {
	Path string
	output.Reset
}

// ResetState sets the watermarks of a definition's datasets back to a time, so that the next
// incremental run begins there; the zero time removes them, so that it begins like a first run. It
// also discards the checkpoints of the forms of which no output failed. A commit that a dead run
// did not finish is finished first. No data is removed. The service is asked for its list of forms
// only if the definition has globs. A dataset that a run is writing gives a *load.HeldError. A
// dataset that fails does not stop the others: the error is a *pipelines.FormsError of
// *output.OutputsError then.
func ResetState(ctx context.Context, def *definition.Definition, o pipelines.Options, to time.Time) (*ResetReport, error) {
	o = o.WithDefaults()
	report := &ResetReport{}
	var done []string
	_, failed, err := eachForm(ctx, def, o, func(def *definition.Definition, form string) error {
		job := o.Job(def, form)
		job.Log = slog.New(slog.DiscardHandler) // no log is needed: the report tells what was discarded
		err := eachOutput(ctx, def, o, form, func(out definition.Output, place output.Location) error {
			if !out.Dataset() || !out.Lasting() {
				return nil // a single file, or a path of one run, has no watermark
			}
			reset := &ResetOutput{Path: place.Path}
			report.Outputs = append(report.Outputs, reset)
			// ResetWatermark takes a lease, which would create the folder of a dataset that was
			// never written. So look tells first whether anything lies there.
			at, err := look(ctx, o, out, place)
			if err == nil && (at.Manifest != nil || !at.Nothing()) {
				reset.Reset, err = output.ResetWatermark(ctx, job, out, load.Wall(to))
			}
			return err
		})
		if err == nil {
			done = append(done, form)
		}
		return err
	})
	if err != nil {
		return report, err
	}
	report.Checkpoints, err = pipelines.DiscardCheckpoints(ctx, def, o, done)
	failed.Add(err)
	return report, failed.OrNil()
}
