package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

func (a *app) stateResetCommand() *cobra.Command {
	var f stateFlags
	cmd := &cobra.Command{
		Use:   "reset DEFINITION",
		Short: "Set watermarks back, and drop what runs that ended early left",
		Long: `Reset removes the watermarks of a definition's datasets, so that the next
incremental run begins like the first, or sets them back to a time. What runs
that ended early had prepared is dropped; a commit that was under way is
finished. It removes no data, and asks before it does anything, or takes --yes.

A dataset that a run is writing to stays as it is: reset ends with 75 then.`,
		Example: `  formetl state reset feedback.yaml
  formetl state reset feedback.yaml --watermark 2026-01-01 --yes
  formetl state reset feedback.yaml --form form1 --yes`,
		Args: oneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return a.stateReset(cmd.Context(), args, f) },
	}
	f.registerState(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.watermark, "watermark", "", "set it back to this date or date-time, wall clock of the account's zone, instead of removing it")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

const nothingChanged = "nothing was changed"

func (a *app) stateReset(ctx context.Context, files []string, f stateFlags) error {
	var to time.Time
	var err error
	if f.watermark != "" {
		if to, err = definition.ParseWallTime(f.watermark); err != nil {
			return fmt.Errorf("--watermark: %w", err)
		}
	}
	if !f.yes { // also where there is nothing to reset: a job that cannot answer never works
		if err := a.somebodyThere(nothingChanged); err != nil {
			return err
		}
	}
	def, o, err := f.loadState(a, files)
	if err != nil {
		return err
	}
	if !f.yes {
		state, _ := pipelines.State(ctx, def, o) // what fails there fails below too, and is told then
		if question := resetQuestion(state, load.Wall(to)); question != "" {
			agreed, err := a.confirm(ctx, question, nothingChanged)
			if err != nil || !agreed {
				return err
			}
		}
	}
	report, failed := pipelines.ResetState(ctx, def, o, to)
	if err := a.printTable(resetRows(report)...); err != nil {
		return err
	}
	if failed == nil || len(resetRows(report)) > 0 {
		a.tellReset(report)
	}
	return failed
}

// resetQuestion says what is about to be done, "" where there is nothing.
func resetQuestion(s *pipelines.StateReport, to load.WallTime) string {
	datasets := 0
	for _, form := range s.Forms {
		for _, out := range form.Outputs {
			if w := out.Watermark(); !w.IsZero() && !w.Equal(to.Time) {
				datasets++
			}
		}
	}
	if datasets+len(s.Checkpoints) == 0 {
		return ""
	}
	var b strings.Builder
	if datasets > 0 {
		from := "the beginning"
		if !to.IsZero() {
			from = wallText(to)
		}
		fmt.Fprintf(&b, "Set the watermark of %s of pipeline %s back to %s?", plural(datasets, "dataset"), cell(s.Pipeline), from)
	} else {
		fmt.Fprintf(&b, "Reset pipeline %s?", cell(s.Pipeline))
	}
	if len(s.Checkpoints) > 0 {
		b.WriteString(" What runs that ended early had read is dropped.")
	}
	return b.String() + " No data is removed. [y/N] "
}

// resetRows show to people what was done: a line for each.
func resetRows(r *pipelines.ResetReport) [][]string {
	var rows [][]string
	for _, out := range r.Outputs {
		if c := out.Recovery; c.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, runCell(c.RunID), recoveryWord(c, false)})
		}
		if !out.Before.Equal(out.After.Time) {
			to := "none"
			if !out.After.IsZero() {
				to = wallText(out.After)
			}
			rows = append(rows, []string{"watermark", out.Path, "was " + wallText(out.Before), "now " + to})
		}
	}
	for _, s := range r.Checkpoints {
		rows = append(rows, []string{"checkpoint", "form " + s.Form, runCell(s.RunID), plural(s.Windows, "window") + " dropped"})
	}
	return rows
}

// tellReset sums up on standard error.
func (a *app) tellReset(r *pipelines.ResetReport) {
	marks, commits := 0, 0
	for _, out := range r.Outputs {
		if !out.Before.Equal(out.After.Time) {
			marks++
		}
		if out.Recovery.Finished {
			commits++
		}
	}
	var parts []string
	note := func(n int, noun, what string) {
		if n > 0 {
			parts = append(parts, plural(n, noun)+" "+what)
		}
	}
	note(commits, "commit", "finished")
	note(marks, "watermark", "set back")
	note(len(r.Checkpoints), "checkpoint", "dropped")
	text := "nothing to reset"
	if len(parts) > 0 {
		text = strings.Join(parts, "; ")
	}
	a.logs.tell(slog.LevelInfo, text, slog.Int("watermarks", marks),
		slog.Int("checkpoints", len(r.Checkpoints)), slog.Int("finished_commits", commits))
}
