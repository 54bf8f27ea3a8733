package pipelines

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
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
	Form, Path string
	output.Reset
	Err error // why it was not reset to the end
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
			failed.Errors = append(failed.Errors, fmt.Errorf("form %s: %w", form, &output.OutputsError{Errors: outputs}))
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
	// The report tells what is discarded: nobody need be warned of it.
	job := o.job(def, form)
	job.Log = slog.New(slog.DiscardHandler)
	var failures []error
	for _, out := range def.Outputs {
		if !out.Dataset() || strings.Contains(out.Path, "{run_id}") || ctx.Err() != nil {
			continue
		}
		reset := &ResetOutput{Form: form, Path: out.Path}
		r.Outputs = append(r.Outputs, reset)
		at, err := output.Locate(def, out, form, o.RunID)
		if err == nil {
			reset.Path = at.Path
			reset.Reset, err = output.ResetWatermark(ctx, job, out, to)
		}
		if reset.Err = err; err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}
