package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines"
)

type runFlags struct {
	definitionFlags
	report, progress string
	full, dryRun     bool
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
  formetl run feedback.yaml --dry-run`,
		Args: definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.BoolVar(&f.full, "full", false, "ignore what earlier runs left: watermark, schema, unfinished work")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the plan and read nothing: the same as formetl plan")
	flags.StringVar(&f.report, "report", "", "write a report of the run to this file, as JSON")
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
	if err := checkReport(f.report); err != nil {
		return err
	}
	options.Logger, options.Progress, options.Stdout = log.Logger, bar.update, a.stdout
	options.Tables.Open = opener(log.Logger)
	options.At = faultPoint(a.lookup)
	r := runs{a: a, bar: bar, options: options}
	for _, def := range defs {
		if ctx.Err() != nil {
			break
		}
		r.one(ctx, def, len(defs) > 1)
	}
	if err := writeReports(f.report, r.reports); err != nil {
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
func (r *runs) one(ctx context.Context, def *pipelines.Definition, others bool) {
	r.options.RunID = pipelines.NewRunID(time.Now())
	report, err := pipelines.Run(ctx, def, r.options)
	r.bar.finish()
	r.reports = append(r.reports, report)
	if err != nil {
		report.ExitCode, report.Error = exitCode(err), err.Error()
		if others {
			err = fmt.Errorf("%s: %w", def.Name, err)
		}
		r.failures = append(r.failures, err)
	}
	logRun(ctx, r.a.logs.Logger, report, err)
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

// logRun writes one summary record a form and one for the run, with keys that
// do not change.
func logRun(ctx context.Context, log *slog.Logger, r *pipelines.Report, err error) {
	var failures []error
	if failed, ok := asForms(err); ok {
		failures = failed.Errors // in the order of the forms that failed
	}
	bad, forms := 0, map[string]bool{}
	for _, f := range r.Forms {
		attrs := []slog.Attr{
			slog.String("pipeline", r.Pipeline), slog.String("form", f.Form), slog.String("run_id", r.RunID),
			slog.Int("windows", f.Windows), slog.Int64("rows", f.Rows), slog.Int64("rejected", f.Rejected),
			slog.Int64("undated", f.Undated), slog.String("verified", verifiedWord(f)),
		}
		forms[f.Form] = true
		if f.Continued != "" {
			attrs = append(attrs, slog.String("continued", f.Continued), slog.Int("windows_kept", f.Kept))
		}
		for _, d := range f.Drift {
			log.LogAttrs(ctx, slog.LevelWarn, "drift", slog.String("form", f.Form), slog.String("what", d))
		}
		if f.Error == "" {
			log.LogAttrs(ctx, slog.LevelInfo, "form done", append(attrs, slog.Int("exit_code", exitOK))...)
			continue
		}
		code := exitBug
		if bad < len(failures) {
			code = exitCode(failures[bad])
		}
		bad++
		log.LogAttrs(ctx, slog.LevelError, "form failed", append(attrs, slog.Int("exit_code", code), slog.String("error", f.Error))...)
	}
	log.LogAttrs(ctx, slog.LevelInfo, "run done",
		slog.String("pipeline", r.Pipeline), slog.String("run_id", r.RunID), slog.Int("forms", len(forms)), slog.Int("failed", bad),
		slog.Int64("requests", r.Requests.Results+r.Requests.Count), slog.Int64("retries", r.Requests.Retries),
		slog.Duration("took", r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond)), slog.Int("exit_code", r.ExitCode))
}

func verifiedWord(f *pipelines.FormReport) string {
	switch {
	case f.Verified == nil:
		return "no"
	case f.Verified.Match:
		return "yes"
	}
	return f.Verified.Reason
}
