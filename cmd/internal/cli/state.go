package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

func (a *app) stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show or reset watermarks and what is under way",
		Long: `State shows what runs of a definition left for the next one, and sets it back.
Neither command asks the service for anything or needs an API key.`,
		Example: `  formetl state show feedback.yaml
  formetl state reset feedback.yaml`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.stateShowCommand(), a.stateResetCommand())
	return cmd
}

type stateFlags struct {
	definitionFlags
	json, yes bool
	watermark string
}

func (a *app) stateShowCommand() *cobra.Command {
	var f stateFlags
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show watermarks, runs under way or ended early, and the budget",
		Long: `Show tells for each form and output up to when results were read (the
watermark), what the last run wrote, whether a run is under way or ended early,
and what is booked of the request budget. It takes no lease and changes nothing.

Where the definition has globs, the forms are those of which something lies at
the outputs; --form names others.`,
		Example: `  formetl state show feedback.yaml
  formetl state show feedback.yaml --form form1
  formetl state show feedback.yaml --json | jq -r '.forms[].outputs[].watermark'`,
		Args: oneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return a.stateShow(cmd.Context(), args, f) },
	}
	f.registerState(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (f *stateFlags) registerState(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.forms, "form", nil, "only this form of the definition; repeatable")
	flags.StringVar(&f.state, "state", "", "folder of budgets and spool (default: the definition's)")
}

// loadState reads the definition, without its key, and what a look at its
// outputs needs.
func (f *stateFlags) loadState(a *app, files []string) (*definition.Definition, pipelines.Options, error) {
	log, err := a.begin(levelWarn)
	if err != nil {
		return nil, pipelines.Options{}, err
	}
	o := pipelines.Options{Tables: tables(), Forms: f.forms, Logger: log.Logger}
	o.Tables.Open = opener(log.Logger)
	defs, err := f.load(a, files, withoutSecrets)
	if err != nil {
		return nil, o, err
	}
	return defs[0], o, nil
}

func (a *app) stateShow(ctx context.Context, files []string, f stateFlags) error {
	def, o, err := f.loadState(a, files)
	if err != nil {
		return err
	}
	report, failed := pipelines.State(ctx, def, o)
	if failed != nil && len(report.Forms) == 0 {
		return failed
	}
	if f.json {
		err = a.printJSON(stateOf(report))
	} else {
		var b bytes.Buffer
		writeState(&b, report)
		err = a.print(b.Bytes())
	}
	if err != nil {
		return err
	}
	return failed
}

// writeState shows a state to people.
func writeState(w io.Writer, r *pipelines.StateReport) {
	fmt.Fprintf(w, "pipeline %s, mode %s, times in %s\n", cell(r.Pipeline), modeOf(r), r.Zone)
	for _, form := range r.Forms {
		fmt.Fprintf(w, "\nform %s\n", cell(form.Form))
		if form.Next != nil {
			fmt.Fprintf(w, "  the next run begins at %s\n", beginning(*form.Next))
		}
		for _, out := range form.Outputs {
			fmt.Fprintf(w, "  %s\n", cell(out.Path))
			writeTable(w, "    ", outputRows(r, out))
		}
	}
	if len(r.Forms) == 0 {
		fmt.Fprintln(w, "\nno form has anything at the outputs yet")
	}
	for _, path := range r.Unlisted {
		fmt.Fprintf(w, "\nforms cannot be looked for at %s: name them with --form\n", cell(path))
	}
	if rows := bookedRows(r); len(rows) > 0 {
		fmt.Fprintln(w, "\nbudget")
		writeTable(w, "  ", rows)
	}
	if len(r.Checkpoints) > 0 {
		fmt.Fprintln(w, "\nread by runs that ended early; the next run resumes from it")
		writeTable(w, "  ", checkpointRows(r.Checkpoints))
	}
}

func modeOf(r *pipelines.StateReport) string {
	if r.Incremental {
		return "incremental"
	}
	return "full"
}

func beginning(t load.WallTime) string {
	if t.IsZero() {
		return "the first result"
	}
	return wallText(t)
}

// outputRows are the lines of one output.
func outputRows(r *pipelines.StateReport, out *pipelines.OutputState) [][]string {
	switch {
	case out.Err != nil:
		return [][]string{{"unknown", "see the error"}}
	case out.PerRun:
		return [][]string{{"unknown", "another path for each run: no run goes on from it"}}
	}
	var rows [][]string
	if out.Dataset {
		rows = append(rows, []string{"watermark", watermarkText(r, out.Watermark())})
	}
	if m := out.Manifest; m != nil {
		rows = append(rows,
			[]string{"last run", fmt.Sprintf("%s, %s", m.RunID, since(r.Now, m.CreatedAt))},
			[]string{"range", rangeText(m.Range)},
			[]string{"rows", rowsText(out.Dataset, m)},
		)
	} else {
		rows = append(rows, []string{"last run", "none"})
	}
	return append(rows, underWayRows(r, out)...)
}

func rowsText(dataset bool, m *load.Manifest) string {
	if !dataset {
		return thousands(m.Rows)
	}
	return thousands(m.Rows) + " in " + plural(len(m.Parts), "part")
}

// underWayRows tell of what is not committed.
func underWayRows(r *pipelines.StateReport, out *pipelines.OutputState) [][]string {
	var rows [][]string
	if h := out.Holder; h != nil {
		text := "a run is under way"
		if h.RunID != "" {
			text = fmt.Sprintf("run %s of pipeline %s, process %d on %s, since %s", h.RunID, h.Pipeline, h.PID, h.Host, since(r.Now, h.Since))
		}
		rows = append(rows, []string{"under way", text})
	}
	if out.Pending != "" {
		rows = append(rows, []string{"commit", fmt.Sprintf("of run %s is recorded; the next run finishes it", out.Pending)})
	}
	if n := len(out.Leftovers); n > 0 {
		rows = append(rows, []string{"leftovers", fmt.Sprintf("%d of dead runs; formetl clean removes them", n)})
	}
	return rows
}

// watermarkText shows a watermark and how long ago it was.
func watermarkText(r *pipelines.StateReport, w load.WallTime) string {
	if w.IsZero() {
		return "none"
	}
	return wallText(w) + ", " + ago(r.Now.Sub(firstInstant(w, r.Zone)))
}

// since shows a time and how long ago it was.
func since(now, then time.Time) string {
	return then.UTC().Format(time.RFC3339) + " (" + ago(now.Sub(then)) + ")"
}

// ago shows to people how long ago something was.
func ago(d time.Duration) string {
	if d < 0 {
		return lasting(-d) + " from now"
	}
	return lasting(d) + " ago"
}

// lasting shows a length of time in one unit.
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return plural(int(d/time.Second), "second")
	case d < 2*time.Hour:
		return plural(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return plural(int(d/time.Hour), "hour")
	}
	return plural(int(d/(24*time.Hour)), "day")
}

// bookedRows are the lines of the budget, none where there is none.
func bookedRows(r *pipelines.StateReport) [][]string {
	b := r.Budget
	var rows [][]string
	if b.PerMinute > 0 {
		rows = append(rows, []string{"minute", booked(b.Minute, b.PerMinute) + " in the last minute"})
	}
	if b.PerDay > 0 {
		rows = append(rows, []string{"day", booked(b.Day, b.PerDay) + " in the last 24 hours"})
	}
	switch {
	case len(rows) == 0:
		return nil
	case b.Next.After(r.Now):
		return append(rows, []string{"next", "a request may be sent at " + since(r.Now, b.Next)})
	}
	return append(rows, []string{"next", "a request may be sent now"})
}

func booked(n, limit int) string {
	return fmt.Sprintf("%s of %s requests booked", thousands(int64(n)), thousands(int64(limit)))
}

func checkpointRows(left []checkpoint.Left) [][]string {
	rows := make([][]string, len(left))
	for i, s := range left {
		rows[i] = []string{"form " + s.Form, "run " + s.RunID, plural(s.Windows, "window"), plural(int(s.Rows), "result"), size(s.Bytes)}
	}
	return rows
}
