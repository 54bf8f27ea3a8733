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

// StateReport is what runs of a definition left for the next one.
type StateReport struct {
	Definition *definition.Definition
	Now        time.Time // when it was looked
	Forms      []*FormState
	Budget     pipelines.Booked
	// Checkpoints are what runs that ended early had read, oldest first.
	Checkpoints []checkpoint.Left
}

// FormState is what is known of one form.
type FormState struct {
	Form    string
	Outputs []*OutputState
	// Next is where the range of the next incremental run begins; zero is the
	// first result. nil where runs are not incremental, or an output's state is
	// not known.
	Next *load.WallTime
}

// OutputState is what lies at one output.
type OutputState struct {
	Path    string // as the run expands it
	Dataset bool
	// PerRun tells that each run has a path of its own, so that the next run finds
	// nothing there.
	PerRun   bool
	Manifest *load.Manifest // of the last commit; nil if there was none
	load.Found
	// Inventory is what does not agree with the manifest by a listing of the dataset. It
	// is empty while a run is under way, or a commit is recorded.
	Inventory load.Inventory
	Err       error // why the state is not known
}

// Watermark is the dataset's, zero where it has none.
func (o *OutputState) Watermark() load.WallTime {
	if o.Manifest == nil {
		return load.WallTime{}
	}
	return o.Manifest.Watermark
}

// State tells what runs of a definition left for the next one: watermarks,
// what is under way or ended early, and the budget. It takes no lease and changes
// nothing. The service is asked for the forms of globs alone. An output that fails
// does not stop the others: the error is an *pipelines.FormsError of
// *output.OutputsError then.
func State(ctx context.Context, def *definition.Definition, o pipelines.Options) (*StateReport, error) {
	o = o.WithDefaults()
	report := &StateReport{Definition: def, Now: o.Now()}
	told := map[string]bool{} // leftovers: files in one folder share what lies there
	forms, failed, err := eachForm(ctx, def, o, func(form string) error {
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

// look looks at one output.
func look(ctx context.Context, o pipelines.Options, out definition.Output, place output.Location) (*OutputState, error) {
	at := &OutputState{Path: place.Path, Dataset: out.Dataset()}
	if at.PerRun = !out.Lasting(); at.PerRun {
		at.Path = out.Path
		return at, nil
	}
	if out.Database != nil {
		table, err := o.Tables.OpenTable(place.Path, out.Database)
		if err == nil {
			at.Holder, err = table.Holder(ctx)
		}
		if err == nil {
			at.Manifest, _, err = table.Last(ctx)
		}
		return at, err
	}
	dest, err := o.Tables.Open(ctx, place.Root, out)
	if err != nil {
		return at, err
	}
	// The manifest is read afterwards, so that a commit in between is seen.
	at.Found, err = load.Look(ctx, dest, place.Scope)
	if err == nil {
		at.Manifest, _, err = output.ManifestAt(ctx, dest, place.Manifest, out)
	}
	if err == nil && out.Dataset() && at.Holder == nil && at.Pending == "" {
		at.Inventory, err = load.TakeInventory(ctx, dest, at.Manifest)
	}
	if err != nil {
		return at, fmt.Errorf("%s: %w", at.Path, err)
	}
	return at, nil
}

// nextBeginning gives where the range of the next incremental run begins, unless
// that run resumes from a checkpoint.
func nextBeginning(def *definition.Definition, o pipelines.Options, outputs []*OutputState) *load.WallTime {
	if !def.Extract.Incremental {
		return nil
	}
	asked, err := reading.NewInterval(def, o.Flags(), o.Now())
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
	next := load.Wall(from)
	return &next
}

// ResetReport is what ResetState did.
type ResetReport struct {
	Outputs []*ResetOutput
	// Checkpoints are those that were discarded.
	Checkpoints []checkpoint.Left
}

// ResetOutput is a dataset and what was reset of it.
type ResetOutput struct {
	Path string
	output.Reset
}

// ResetState sets the watermarks of a definition's datasets back to a time, or
// with the zero time to none, so that the next incremental run begins there or
// like the first; and it discards the checkpoints of forms of which nothing
// failed. A commit that is recorded is finished before. No data is
// removed. The service is asked for the forms of globs alone. A dataset that a run is
// at is a *load.HeldError. One that fails does not stop the others: the error is an
// *pipelines.FormsError of *output.OutputsError then.
func ResetState(ctx context.Context, def *definition.Definition, o pipelines.Options, to time.Time) (*ResetReport, error) {
	o = o.WithDefaults()
	report := &ResetReport{}
	var done []string
	_, failed, err := eachForm(ctx, def, o, func(form string) error {
		job := o.Job(def, form)
		job.Log = slog.New(slog.DiscardHandler) // the report tells what is discarded
		err := eachOutput(ctx, def, o, form, func(out definition.Output, place output.Location) error {
			if !out.Dataset() || !out.Lasting() {
				return nil // it has no watermark
			}
			reset := &ResetOutput{Path: place.Path}
			report.Outputs = append(report.Outputs, reset)
			// It is looked at first, because a lease creates the folder of a dataset that was never written.
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
