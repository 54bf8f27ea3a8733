package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

type runFlags struct {
	from, to, report, state, progress, keyFile string
	forms                                      []string
	full, dryRun                               bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run DEFINITION...",
		Short: "Run pipeline definitions",
		Long:  "Run reads every result of each definition's range and writes its outputs, each whole or not at all.",
		Example: `  formetl run feedback.yaml
  formetl run feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl run a.yaml b.yaml --log-format json --report report.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "beginning of the range, wall clock of the account's zone")
	flags.StringVar(&f.to, "to", "", "end of the range, exclusive")
	flags.BoolVar(&f.full, "full", false, "ignore what earlier runs left: watermark, schema, unfinished work")
	flags.StringArrayVar(&f.forms, "form", nil, "only this form of the definition; repeatable")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the plan and read nothing: the same as formetl plan")
	flags.StringVar(&f.report, "report", "", "write a report of the run to this file, as JSON")
	flags.StringVar(&f.state, "state", "", "folder of budgets and spool (default: the definition's)")
	flags.StringVar(&f.progress, "progress", progressAuto, "progress bar: auto (on a terminal), on or off")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file that holds the API key, instead of the definition's reference")
	return cmd
}

// run runs definitions one after the other. All are checked before the first
// begins.
func (a *app) run(ctx context.Context, files []string, f runFlags) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	bar, err := newProgress(a.stderr, f.progress)
	if err != nil {
		return err
	}
	log, err := a.begin(a.runLevel(bar))
	if err != nil {
		return err
	}
	defs, err := a.loadDefinitions(files, f.keyFile, f.state)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.showPlans(ctx, defs, options, planFlags{})
	}
	options.Logger, options.Progress, options.Stdout = log, bar.update, a.stdout
	var reports []*pipelines.Report
	var failures []error
	for _, def := range defs {
		options.RunID = pipelines.NewRunID(time.Now())
		report, err := pipelines.Run(ctx, def, options)
		bar.finish()
		logRun(ctx, log, report, err)
		reports = append(reports, report)
		if err != nil {
			report.ExitCode, report.Error = exitCode(err), err.Error()
			failures = append(failures, fmt.Errorf("%s: %w", def.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := writeReports(f.report, reports); err != nil {
		failures = append(failures, err)
	}
	switch len(failures) {
	case 0:
		return nil
	case 1:
		return failures[0]
	}
	return &pipelines.FormsError{Forms: len(defs), Errors: failures}
}

// runLevel keeps info records out of a progress bar's way.
func (a *app) runLevel(bar *progress) slog.Level {
	if bar.on {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func (f runFlags) options() (pipelines.Options, error) {
	o := pipelines.Options{Tables: tables(), Full: f.full, Forms: f.forms, Client: clientOptions()}
	return o, parseRange(f.from, f.to, &o)
}

func clientOptions() pipelines.ClientOptions {
	return pipelines.ClientOptions{UserAgent: "formetl/" + version()}
}

func parseRange(from, to string, o *pipelines.Options) (err error) {
	if from != "" {
		if o.From, err = pipelines.ParseWallTime(from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	if to != "" {
		if o.To, err = pipelines.ParseWallTime(to); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	if !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To) {
		return fmt.Errorf("--to %s does not lie after --from %s (--to is exclusive)", to, from)
	}
	return nil
}

// loadDefinitions checks every definition before anything is asked of a service.
func (a *app) loadDefinitions(files []string, keyFile, state string) ([]*pipelines.Definition, error) {
	o := pipelines.LoadOptions{Lookup: a.lookup, Formats: tables().Formats}
	if keyFile != "" {
		key, err := pipelines.KeyFromFile(keyFile)
		if err != nil {
			return nil, &usageError{err}
		}
		o.Key = key
	}
	var defs []*pipelines.Definition
	var failures []error
	for _, file := range files {
		def, err := pipelines.LoadDefinition(file, o)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if state != "" {
			if def.State, err = filepath.Abs(state); err != nil {
				return nil, err
			}
		}
		defs = append(defs, def)
	}
	return defs, errors.Join(failures...)
}

// logRun writes one summary record a form.
func logRun(ctx context.Context, log *slog.Logger, r *pipelines.Report, err error) {
	for _, f := range r.Forms {
		level, msg := slog.LevelInfo, "form done"
		if f.Error != "" {
			level, msg = slog.LevelError, "form failed"
		}
		attrs := []slog.Attr{
			slog.String("pipeline", r.Pipeline), slog.String("form", f.Form), slog.String("run_id", r.RunID),
			slog.Int64("rows", f.Rows), slog.Int64("rejected", f.Rejected), slog.String("verified", verifiedWord(f)),
			slog.Int64("requests", r.Requests.Results+r.Requests.Count), slog.Int64("retries", r.Requests.Retries),
			slog.Duration("took", r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond)),
		}
		for _, d := range f.Drift {
			log.LogAttrs(ctx, slog.LevelWarn, "drift", slog.String("form", f.Form), slog.String("what", d))
		}
		if f.Error != "" {
			attrs = append(attrs, slog.String("error", f.Error), slog.Int("exit_code", exitCode(err)))
		}
		log.LogAttrs(ctx, level, msg, attrs...)
	}
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

// writeReports writes the report, or a list of them for several definitions.
func writeReports(file string, reports []*pipelines.Report) error {
	if file == "" {
		return nil
	}
	var v any = reports
	if len(reports) == 1 {
		v = reports[0]
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(file, append(data, '\n'), 0o640); err != nil {
		return fmt.Errorf("write the report: %w", errors.Join(err, os.ErrPermission))
	}
	return nil
}

// counted shows a count that may be unknown.
func counted(n int64) string {
	if n == extract.Unknown {
		return "?"
	}
	return thousands(n)
}
