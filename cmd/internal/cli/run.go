package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

type runFlags struct {
	definitionFlags
	report, metrics, progress string
	full, dryRun              bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run DEFINITION...",
		Short: "Run pipeline definitions",
		Long: `Run reads every result of each definition's range and writes its outputs, each
whole or not at all. All definitions are checked before the first request. One
that fails does not stop the others.`,
		Example: `  formetl run feedback.yaml
  formetl run feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl run a.yaml b.yaml --log-format json --report report.json
  formetl run feedback.yaml --metrics /var/lib/prometheus/node-exporter/feedback.prom
  formetl run feedback.yaml --dry-run`,
		Args: definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.BoolVar(&f.full, "full", false, "ignore what earlier runs left: watermark, schema, unfinished work")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the plan and read nothing: the same as formetl plan")
	flags.StringVar(&f.report, "report", "", "write a report of the run to this file, as JSON")
	flags.StringVar(&f.metrics, "metrics", "", "write metrics of the run to this file (NAME.prom), for node_exporter's textfile collector")
	flags.StringVar(&f.progress, "progress", progressAuto, progressUsage)
	return cmd
}

// run runs definitions one after the other.
func (a *app) run(ctx context.Context, files []string, f runFlags) error {
	if f.dryRun {
		return a.plan(ctx, files, planFlags{definitionFlags: f.definitionFlags, full: f.full})
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	options.Full = f.full
	bar, err := a.newProgress(f.progress)
	if err != nil {
		return err
	}
	log, err := a.begin(runLevel(bar))
	if err != nil {
		return err
	}
	defs, err := f.load(a, files, withSecrets)
	if err != nil {
		return err
	}
	for _, side := range []sideFile{reportPlace(f.report), metricsPlace(f.metrics)} {
		if err := side.check(); err != nil {
			return err
		}
	}
	options.Progress, options.Stdout = bar.update, a.stdout
	if err := testHooks(a.lookup, &options); err != nil {
		return err
	}
	r := runs{a: a, bar: bar, options: options}
	for _, def := range defs { // also those that are not begun any more: the report tells of each
		r.one(ctx, def, len(defs) > 1)
	}
	a.kept = keptOf("for the next run", r.reports...)
	if err := errors.Join(writeReports(f.report, r.reports), writeMetrics(ctx, f.metrics, r.reports, log.Logger)); err != nil {
		r.failures = append(r.failures, err)
	}
	switch len(r.failures) {
	case 0:
		return nil
	case 1:
		return r.failures[0]
	}
	return &pipelines.FormsError{Forms: len(defs), Errors: r.failures}
}

// runs are the runs of one command.
type runs struct {
	a        *app
	bar      *progress
	options  pipelines.Options
	reports  []*pipelines.Report
	failures []error
}

// one runs a definition. Its name goes into the error where there are others.
func (r *runs) one(ctx context.Context, def *definition.Definition, others bool) {
	now := time.Now
	if r.options.Now != nil {
		now = r.options.Now
	}
	options := r.options
	options.RunID = pipelines.NewRunID(now())
	log := r.a.logs.With(slog.String("pipeline", def.Name), slog.String("run_id", options.RunID))
	options.Logger, options.Tables.Open = log, opener(log)
	report, err := pipelines.Run(ctx, def, options)
	r.bar.finish()
	r.reports = append(r.reports, report)
	judgeReport(report, err)
	if err != nil {
		failure := err
		if others {
			failure = fmt.Errorf("%s: %w", def.Name, err)
		}
		r.failures = append(r.failures, failure)
	}
	for _, f := range report.Forms {
		logForm(ctx, log.With(slog.String("form", f.Form)), f)
	}
	if !r.bar.on || log.Enabled(ctx, levelInfo) {
		logSummary(ctx, log, report, err)
	}
	if r.bar.on { // a person watches, and the log keeps out of the bar's way
		r.a.summary(report, false)
	}
}

// runLevel keeps info records out of a progress bar's way.
func runLevel(bar *progress) slog.Level {
	if bar.on {
		return levelWarn
	}
	return levelInfo
}
