package maintain

import (
	"context"
	"log/slog"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
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

// ResetState sets the watermarks of a definition's datasets back to a time, or
// with the zero time to none, so that the next incremental run begins there or
// like the first; and it discards the checkpoints of forms of which nothing
// failed. A commit that is recorded is finished before. No data is
// removed. The service is asked for the forms of globs alone. A dataset that a run is
// at is a *load.HeldError. One that fails does not stop the others: the error is an
// *account.FormsError of *output.OutputsError then.
func ResetState(ctx context.Context, def *definition.Definition, o account.Options, to time.Time) (*ResetReport, error) {
	o = o.WithDefaults()
	report := &ResetReport{Pipeline: def.Name, Definition: def.File}
	forms, err := account.ListForms(ctx, def, o)
	if err != nil {
		return report, err
	}
	var failed account.FormsError
	var done []string
	err = failed.Each(ctx, forms, func(form string) error {
		err := report.form(ctx, def, o, form, load.Wall(to))
		if err == nil {
			done = append(done, form)
		}
		return err
	})
	if err != nil {
		return report, err
	}
	report.Checkpoints, err = account.DiscardCheckpoints(ctx, def, o, done)
	failed.Add(err)
	return report, failed.OrNil()
}

// form resets a form's datasets. The error is that of those that failed. Single
// files have no watermark.
func (r *ResetReport) form(ctx context.Context, def *definition.Definition, o account.Options, form string, to load.WallTime) error {
	// The report tells what is discarded, so that the log need not.
	job := o.Job(def, form)
	job.Log = slog.New(slog.DiscardHandler)
	looker := &stateLooker{def: def, o: o, told: map[string]bool{}}
	var failures []error
	for _, out := range def.Outputs {
		if !out.Dataset() || !out.Lasting() || ctx.Err() != nil {
			continue
		}
		reset := &ResetOutput{Form: form, Path: out.Path}
		r.Outputs = append(r.Outputs, reset)
		// It is looked at first, because a lease creates the folder of a dataset that was never written.
		left, err := looker.output(ctx, out, form)
		if reset.Path = left.Path; err == nil && (left.Manifest != nil || !left.Nothing()) {
			reset.Reset, err = output.ResetWatermark(ctx, job, out, to)
		}
		if reset.Err = err; err != nil {
			failures = append(failures, err)
		}
	}
	return output.Failed(failures)
}
