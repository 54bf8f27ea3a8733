package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/cmd/internal/report"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// runFlags are the flags of commands that run definitions: run and replay.
type runFlags struct {
	console.DefinitionFlags
	watch        watchFlags
	full, dryRun bool
	strict       bool
}

func runCommand(p *process) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run DEFINITION...",
		Short: "Run pipeline definitions",
		Long: `Run reads the results in each definition's range, or in that of --last and the like, and
writes the outputs, each completely or not at all. A file then has only these results; a
dataset or table keeps its others. All definitions are checked first: if one is wrong,
none runs. If the run of one fails, the others go on.`,
		Example: `  formetl run feedback.yaml
  formetl run feedback.yaml --last month
  formetl run a.yaml b.yaml --log-format json --report report.json
  formetl run feedback.yaml --metrics /var/lib/prometheus/node-exporter/feedback.prom
  formetl run feedback.yaml --dry-run`,
		Annotations: map[string]string{commonFlags: "form from to last full dry-run strict report metrics progress"},
		Args:        console.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dryRun {
				return plan(cmd.Context(), p, args, planFlags{DefinitionFlags: f.DefinitionFlags, full: f.full})
			}
			return run(cmd.Context(), p, args, f)
		},
	}
	set := cmd.Flags()
	f.Register(set)
	f.watch.register(set, "write a report about all definitions to this file: JSON, or a web page if the name ends with .html")
	set.BoolVar(&f.full, "full", false, "read all results again, not only new ones, and replace all that the outputs hold")
	set.BoolVar(&f.strict, "strict", false, "end with 65 and write nothing if the run cannot prove that no result is missing or duplicated (without this: 0, \"not verified\")")
	set.BoolVar(&f.dryRun, "dry-run", false, "only show the plan (as formetl plan), which asks for counts")
	set.StringVar(&f.watch.metrics, "metrics", "", "write metrics of the run to this file (NAME.prom) for node_exporter's textfile collector")
	return cmd
}

func run(ctx context.Context, p *process, files []string, f runFlags) error {
	r, defs, err := f.open(ctx, p, files)
	if err != nil {
		return r.notBegun(ctx, f, files, err)
	}
	for _, def := range defs { // after a stop too, because the report tells of each definition
		r.one(ctx, def, r.options, len(defs) > 1)
	}
	return failed(len(defs), r.end(ctx, f))
}

// runs are the runs of one command, with their reports and the errors of those that failed.
type runs struct {
	process  *process
	bar      *console.Progress
	options  pipelines.Options
	reports  []*pipelines.Report
	failures []error
}

// open starts a command, reads its definitions and prepares the runs. A dry run needs no API key.
func (f *runFlags) open(ctx context.Context, p *process, files []string) (*runs, []*definition.Definition, error) {
	bar, err := p.log.NewProgress(f.watch.progress)
	if err != nil {
		return nil, nil, err
	}
	defs, o, err := p.open(ctx, &f.DefinitionFlags, files, bar.LogLevel(), !f.dryRun)
	if err == nil {
		report.NoteMetrics(ctx, p.log.Logger, f.watch.metrics)
	}
	for _, def := range defs {
		if f.strict && !def.Extract.Verify && err == nil {
			err = console.Usagef("--strict compares with the service's counts, and %s says verify: false: remove one of them", def.File)
		}
		def.Extract.Proof = def.Extract.Proof || f.strict
	}
	o.Full = f.full
	if err == nil {
		err = f.watch.prepare(p, bar, &o)
	}
	return &runs{process: p, bar: bar, options: o}, defs, err
}

// watchFlags are the flags that say how a run is shown: by a progress bar, a report and metrics.
type watchFlags struct{ report, metrics, progress string }

// register adds --progress, and --report with this help text.
func (f *watchFlags) register(set *pflag.FlagSet, report string) {
	set.StringVar(&f.report, "report", "", report)
	set.StringVar(&f.progress, "progress", console.ProgressAuto, "progress bar: auto (only on a terminal), on or off; no bar with --log-format json")
}

// prepare checks that the files of --report and --metrics can be written. It adds progress and
// standard output to the options of a run, and what tests set.
func (f *watchFlags) prepare(p *process, bar *console.Progress, o *pipelines.Options) error {
	if err := cmp.Or(report.CheckFile("report", f.report), report.CheckFile("metrics", f.metrics)); err != nil {
		return err
	}
	o.Progress, o.Client.Waits, o.Stdout = bar.Update, bar.Wait, p.stdout
	return console.TestHooks(p.lookup, o)
}

// write writes the files of --report and --metrics, as far as the flags are given.
func (f *watchFlags) write(ctx context.Context, p *process, reports ...*pipelines.Report) error {
	return errors.Join(report.Write(f.report, reports), report.WriteMetrics(ctx, f.metrics, reports, p.log.Logger))
}

// one runs a definition. If the command runs several, the definition's name stands before its
// error.
func (r *runs) one(ctx context.Context, def *definition.Definition, options pipelines.Options, several bool) {
	options.RunID = pipelines.NewRunID(options.Now())
	r.process.log.About(def.Name, options.RunID)
	log := r.process.log.With(slog.String("pipeline", def.Name), slog.String("run_id", options.RunID))
	options.Logger, options.BuiltIn = log, console.BuiltIn(log)
	tellUnmatched := r.process.unmatched(ctx, def, options, def.Extract.Search.Where)
	report, err := r.watched(ctx, def, options)
	r.reports = append(r.reports, report)
	console.SetExitCodes(report, err)
	if err != nil {
		told := slices.ContainsFunc(report.Forms, func(f *pipelines.FormReport) bool { return f.Err != nil && console.Begun(f) })
		r.failures = append(r.failures, &console.RunError{
			Pipeline: def.Name, RunID: options.RunID, NamesPipeline: several, Told: told && !r.process.log.ToPerson(), Err: err,
		})
	}
	tellUnmatched(report)
	console.LogRejects(ctx, log, report)
	if !r.bar.Shown() || log.Enabled(ctx, slog.LevelInfo) {
		console.LogSummary(ctx, log, report, err)
	}
	if r.bar.Shown() { // a person watches the bar, so the log prints less
		r.process.log.Summarize(report, false)
	}
}

// watched runs a definition, and shows its progress. Without a bar each form is logged when it
// ends; with a bar the forms are logged after the run, so that lines do not disturb the bar.
func (r *runs) watched(ctx context.Context, def *definition.Definition, options pipelines.Options) (*pipelines.Report, error) {
	logForm := func(f *pipelines.FormReport) {
		r.process.log.LogForm(ctx, options.Logger.With(slog.String("form", f.Form)), f)
	}
	if !r.bar.Shown() {
		options.Ended = logForm
	}
	stop := r.bar.Start(ctx, options.Logger, options.Now(), r.process.ticks)
	report, err := pipelines.Run(ctx, def, options)
	stop()
	if r.bar.Shown() {
		for _, f := range report.Forms {
			logForm(f)
		}
	}
	return report, err
}

// end writes report and metrics, and returns the errors of all that failed.
func (r *runs) end(ctx context.Context, f runFlags) []error {
	r.process.resumable = console.Resumable("the next run", r.reports...)
	if err := f.watch.write(ctx, r.process, r.reports...); err != nil {
		r.failures = append(r.failures, err)
	}
	return r.failures
}

// notBegun ends a command that failed before it began to run its definitions, and returns the
// command's error. Report and metrics tell of each definition, so that a dashboard shows the
// failure. After wrong flags both files are left unchanged.
func (r *runs) notBegun(ctx context.Context, f runFlags, files []string, err error) error {
	if r == nil || !r.process.log.Started() || f.dryRun {
		return err
	}
	for i, file := range files {
		now := time.Now()
		name, why := r.process.whyNotBegun(file, f.DefinitionFlags, err)
		report := &pipelines.Report{
			Pipeline: name, Definition: file, RunID: pipelines.NewRunID(now),
			StartedAt: now.UTC(), EndedAt: now.UTC(), Forms: []*pipelines.FormReport{},
		}
		console.SetExitCodes(report, why)
		r.reports = append(r.reports, report)
		if i == 0 {
			r.process.log.About(report.Pipeline, report.RunID)
		}
	}
	// If a file of --report or --metrics cannot be written, the command's error says so already.
	_ = f.watch.write(ctx, r.process, r.reports...)
	return err
}

// whyNotBegun returns the name of the pipeline in a file, and why it was not run. If the name
// cannot be read, it is the file's name without the extension.
func (p *process) whyNotBegun(file string, f console.DefinitionFlags, err error) (name string, why error) {
	name, why = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), err
	for _, part := range console.Parts(err) {
		wrong, ok := errors.AsType[*definition.Error](part)
		if ok && wrong.File == file {
			return cmp.Or(wrong.Name, name), wrong
		} else if ok {
			why = fmt.Errorf("not started, because another definition is wrong: %w", err)
		}
	}
	if defs, err := p.load(context.Background(), &f, []string{file}, withoutKey); err == nil {
		name = defs[0].Name
	}
	return name, why
}
