package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

func replayCommand(p *process) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "replay DEFINITION",
		Short: "Read rejected results again after you fixed the schema",
		Long: `Replay finds the dead letters (rejected results) at the definition's outputs, and
reads the windows that they come from again, with the current schema. In a dataset or
table it replaces the results of these windows, so that each is there once. For a
single file it reads the definition's whole range. The dead letters are replaced too:
only results that still do not fit stay in them.

Fix the schema first: give the column another format, separator or on_error (formetl
help schemas). If you change its type or name, use formetl run DEFINITION --full
instead: it reads everything again, and writes the outputs and dead letters anew.`,
		Example: `  formetl replay feedback.yaml --dry-run
  formetl replay feedback.yaml
  formetl replay feedback.yaml --form form1 --report replay.json`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return replay(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, ", instead of the definition's reference")
	f.watch.register(set, "write a report about what was read again to this file: JSON, or a web page if the name ends with .html")
	set.BoolVar(&f.dryRun, "dry-run", false, "only list what would be read again")
	return cmd
}

func replay(ctx context.Context, p *process, files []string, f runFlags) error {
	r, defs, err := f.open(ctx, p, files)
	if err == nil && f.dryRun && pipelines.NeedsForms(defs[0], r.options) {
		defs[0], err = p.loadKey(ctx, &f.DefinitionFlags, files[0])
	}
	if err != nil {
		return r.notBegun(ctx, f, files, err)
	}
	found, err := pipelines.FindRejects(ctx, defs[0], r.options)
	if err != nil {
		return r.notBegun(ctx, f, files, err)
	}
	if len(found) == 0 {
		p.log.Tell(slog.LevelInfo, defs[0].Name+": the outputs have no rejected results to replay; a run that failed keeps none: fix the schema, then run it again")
	}
	if f.dryRun {
		return console.Table(p.stdout, replayRows(found)...)
	}
	for _, form := range found {
		r.replay(ctx, defs[0], form)
	}
	return errors.Join(r.end(ctx, f)...)
}

// replay runs a form again for its dead letters (rejected results). A run that fails does not
// stop the runs that follow.
func (r *runs) replay(ctx context.Context, def *definition.Definition, form pipelines.FormReplay) {
	failed := len(r.failures)
	for _, o := range form.Options(r.options) { // after a stop too, because the report tells of each run
		r.one(ctx, def, o, false)
	}
	if ctx.Err() != nil {
		return
	}
	o := r.options
	o.Forms = []string{form.Form}
	remaining, err := pipelines.FindRejects(ctx, def, o)
	if err != nil {
		r.failures = append(r.failures, err)
		return
	}
	still := 0
	for _, f := range remaining {
		still += f.Results
	}
	level, text := slog.LevelInfo, fmt.Sprintf("%s: %s read again", form.Form, plain.Plural(form.Results, "rejected result"))
	because := ", because their values still do not fit the schema (their dead letters say why), or because the range that was read does not include them"
	if len(r.failures) > failed { // their errors follow
		level, text, because = slog.LevelWarn, form.Form+": not all rejected results were replayed, because a run failed (see its error); none is lost", ""
	}
	text += fmt.Sprintf("; still rejected: %s", plain.Thousands(still))
	if still > 0 {
		text += because
	}
	r.process.log.Tell(level, text, slog.String("form", form.Form), slog.Int("results", form.Results), slog.Int("rejected", still))
}

func replayRows(found []pipelines.FormReplay) [][]string {
	rows := [][]string{{"FORM", "REJECTED", "READ AGAIN"}}
	for _, f := range found {
		head := []string{f.Form, strconv.Itoa(f.Results)}
		if f.Whole {
			rows = append(rows, append(head, "the whole range"))
			continue
		}
		for _, r := range f.Ranges {
			rows = append(rows, append(head, console.Range(r)))
			head = []string{"", ""}
		}
	}
	return rows
}
