package pipelines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// ResetReport is what ResetState did.
type ResetReport struct {
	Pipeline   string
	Definition string
	Outputs    []*ResetOutput
	// Checkpoints are those that were discarded.
	Checkpoints []checkpoint.Left
}

// ResetOutput is a dataset and what was reset of it.
type ResetOutput struct {
	Form, Path    string
	Before, After load.WallTime // the watermark; equal where it stays
	// Recovery is the commit that was recorded and was finished first.
	Recovery load.Recovery
	Err      error // why it was not reset to the end
}

// Nothing tells whether everything is as it was.
func (o *ResetOutput) Nothing() bool {
	return o.Before.Equal(o.After.Time) && o.Recovery.RunID == ""
}

// ResetState sets the watermarks of a definition's datasets back to a time, or
// with the zero time to none, so that the next incremental run begins there or
// like the first; and it discards the checkpoints of forms of which nothing
// failed. A commit that is recorded is finished before. No data is
// removed, nothing is asked of the service, and a dataset that a run is at is
// a *load.HeldError. One that fails does not stop the others: the error is a
// *FormsError of *OutputsError then.
func ResetState(ctx context.Context, def *definition.Definition, o Options, to time.Time) (*ResetReport, error) {
	o = o.withDefaults()
	report := &ResetReport{Pipeline: def.Name, Definition: def.File}
	forms, err := (&StateReport{}).forms(ctx, def, o)
	if err != nil {
		return report, err
	}
	failed := &FormsError{Forms: len(forms)}
	var done []string
	for _, form := range forms {
		outputs := report.form(ctx, def, o, form, load.Wall(to))
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if len(outputs) > 0 {
			failed.Errors = append(failed.Errors, fmt.Errorf("form %s: %w", form, &OutputsError{Errors: outputs}))
		} else {
			done = append(done, form)
		}
	}
	if report.Checkpoints, err = discardCheckpoints(ctx, def, o, done); err != nil {
		failed.Errors = append(failed.Errors, err)
	}
	if len(failed.Errors) > 0 {
		return report, failed
	}
	return report, nil
}

// form resets a form's datasets and gives the errors of those that failed.
// Single files have no watermark.
func (r *ResetReport) form(ctx context.Context, def *definition.Definition, o Options, form string, to load.WallTime) []error {
	// What it discards is told by the report: nobody need be warned of it.
	f := &formRun{def: def, o: o, form: form, log: slog.New(slog.DiscardHandler)}
	var failures []error
	for _, out := range def.Outputs {
		if !out.Dataset() || strings.Contains(out.Path, "{run_id}") || ctx.Err() != nil {
			continue
		}
		reset := &ResetOutput{Form: form, Path: out.Path}
		r.Outputs = append(r.Outputs, reset)
		if reset.Err = f.reset(ctx, out, reset, to); reset.Err != nil {
			failures = append(failures, reset.Err)
		}
	}
	return failures
}

// reset resets one dataset.
func (f *formRun) reset(ctx context.Context, out definition.Output, r *ResetOutput, to load.WallTime) error {
	var err error
	if r.Path, err = definition.ExpandPath(out.Path, f.def.PathValues(f.form, f.o.RunID)); err != nil {
		r.Path = out.Path
		return err
	}
	found, err := f.lookAt(ctx, out, r.Path)
	if found == nil || err != nil {
		return err
	}
	opened, err := f.openDataset(ctx, out, r.Path)
	if err != nil {
		return err
	}
	o, _ := opened.(*datasetOutput)
	err = o.reset(ctx, found, r, to)
	return errors.Join(err, o.close(context.WithoutCancel(ctx)))
}

// lookAt looks without the lease, which would make the folder of a dataset
// that was never written; nil where there is none, and nothing that a run left.
func (f *formRun) lookAt(ctx context.Context, out definition.Output, path string) (*load.Found, error) {
	dest, err := f.o.Tables.Open(ctx, path, out)
	if err != nil {
		return nil, err
	}
	found, err := load.Look(ctx, dest, "")
	if err != nil && !errors.Is(err, load.ErrNoSweep) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	_, _, err = dest.Get(ctx, load.ManifestName)
	switch {
	case errors.Is(err, load.ErrNotExist) && found.Nothing():
		return nil, nil
	case err != nil && !errors.Is(err, load.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &found, nil
}

// reset resets the dataset under its lease; its recorded commit was finished
// when it was opened.
func (o *datasetOutput) reset(ctx context.Context, found *load.Found, r *ResetOutput, to load.WallTime) error {
	r.Recovery = load.Recovery{RunID: found.Pending, Finished: o.manifest != nil && o.manifest.RunID == found.Pending}
	if o.manifest != nil {
		r.Before, r.After = o.manifest.Watermark, o.manifest.Watermark
	}
	if err := o.fits(); err != nil {
		return err
	}
	if !to.IsZero() && o.manifest != nil && to.Compare(r.Before.Time) > 0 { // else it would fail half-way
		return fmt.Errorf("%s: %w", r.Path, &load.WatermarkError{Watermark: r.Before, To: to})
	}
	if o.manifest == nil || to.Equal(r.Before.Time) {
		return nil
	}
	if err := o.held(); err != nil {
		return err
	}
	if _, err := load.ResetWatermark(ctx, o.dest, to); err != nil {
		return fmt.Errorf("%s: %w", r.Path, err)
	}
	r.After = to
	return nil
}
