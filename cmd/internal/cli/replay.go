package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

type replayFlags struct {
	definitionFlags
	report, progress string
	dryRun           bool
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay DEFINITION",
		Short: "Read rejected results again, after the schema was mended",
		Long: `Replay looks for dead letters at the definition's outputs and reads the windows
of time again in which results were rejected, under the schema as it is by now.
As in a backfill the parts that hold these windows are replaced, so that every
result is in a dataset once; a single file is made anew, whole. Then the dead
letters that were replayed are removed. Results that still do not fit are
rejected anew, into new dead letters.

Mend the schema first: a format, words or separators that were not declared, or
another rule for values that do not fit. A change of a column's type or name
needs formetl run DEFINITION --full instead, which replaces the whole dataset and removes
all its dead letters.`,
		Example: `  formetl replay feedback.yaml --dry-run
  formetl replay feedback.yaml
  formetl replay feedback.yaml --form form1 --report replay.json`,
		Args: oneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.forms, "form", nil, "only this form of the definition; repeatable")
	flags.StringVar(&f.state, "state", "", "folder of budgets and spool (default: the definition's)")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file that holds the API key, instead of the definition's reference")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list what would be read again and ask the service for nothing")
	flags.StringVar(&f.report, "report", "", "write the reports of the runs to this file, as JSON")
	flags.StringVar(&f.progress, "progress", progressAuto, progressUsage)
	return cmd
}

func (a *app) replay(ctx context.Context, files []string, f replayFlags) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	bar, err := a.newProgress(f.progress)
	if err != nil {
		return err
	}
	log, err := a.beginWith(runLevel(bar), &options)
	if err != nil {
		return err
	}
	defs, err := f.load(a, files, secrets(!f.dryRun))
	if err != nil {
		return err
	}
	def := defs[0]
	found, err := pipelines.FindRejects(ctx, def, options)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.printTable(replayRows(found)...)
	}
	if err := reportPlace(f.report).check(); err != nil {
		return err
	}
	options.Progress, options.Stdout = bar.update, a.stdout
	if err := testHooks(a.lookup, &options); err != nil {
		return err
	}
	r := runs{a: a, bar: bar, options: options}
	for _, form := range found.Forms {
		r.replay(ctx, def, form)
	}
	a.kept = keptOf("for the next run", r.reports...)
	if len(found.Forms) == 0 {
		log.tell(levelInfo, def.Name+": there are no dead letters")
	}
	if err := writeReports(f.report, r.reports); err != nil {
		r.failures = append(r.failures, err)
	}
	return errors.Join(r.failures...)
}

// replay runs what a form's dead letters ask for, and removes those that were
// replayed. One run that fails does not stop the others.
func (r *runs) replay(ctx context.Context, def *definition.Definition, form pipelines.FormReplay) {
	options, first, failed := r.options, len(r.reports), len(r.failures)
	for _, o := range form.Options(options) { // also those that are not begun any more: the report tells of each
		r.options = o
		r.one(ctx, def, false)
	}
	r.options = options
	if ctx.Err() != nil {
		return
	}
	var rejected int64
	for _, report := range r.reports[first:] {
		for _, f := range report.Forms {
			rejected += f.Rejected
		}
	}
	removed, kept, err := form.Remove(ctx, r.reports[first:])
	if err != nil {
		r.failures = append(r.failures, err)
	}
	if len(r.failures) > failed {
		r.a.logs.tell(levelWarn, fmt.Sprintf("%s: not all was replayed; %s of dead letters removed, the others stay", form.Form, plural(removed, "file")),
			slog.String("form", form.Form), slog.Int("removed", removed))
		return
	}
	text := fmt.Sprintf("%s: %s in %s of dead letters replayed, %s rejected anew; %s removed, %s kept",
		form.Form, plural(form.Results, "result"), plural(form.Objects, "file"), thousands(rejected), plural(removed, "file"), thousands(int64(kept)))
	if kept > 0 {
		text += ": some of what they tell of was not read by this run itself, but before by one that it went on with, or lies beyond its range; replay again"
	}
	r.a.logs.tell(levelInfo, text, slog.String("form", form.Form), slog.Int("results", form.Results),
		slog.Int64("rejected", rejected), slog.Int("removed", removed), slog.Int("kept", kept))
}

// replayRows show to people what would be read again.
func replayRows(found *pipelines.Replay) [][]string {
	rows := [][]string{{"FORM", "DEAD LETTERS", "RESULTS", "READ AGAIN"}}
	for _, f := range found.Forms {
		head := []string{f.Form, strconv.Itoa(f.Objects), strconv.Itoa(f.Results)}
		if f.Whole {
			rows = append(rows, append(head, "the whole range"))
			continue
		}
		for _, r := range f.Ranges {
			rows = append(rows, append(head, rangeText(r)))
			head = []string{"", "", ""}
		}
	}
	return rows
}
