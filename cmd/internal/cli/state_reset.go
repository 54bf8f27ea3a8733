package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/schemas/plain"
)

type resetFlags struct {
	console.DefinitionFlags
	watermark string
	yes       bool
}

func stateResetCommand(p *process) *cobra.Command {
	var f resetFlags
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
		Args: console.OneDefinition(),
		RunE: func(cmd *cobra.Command, args []string) error { return stateReset(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, keyForForms)
	set.StringVar(&f.watermark, "watermark", "", "set it back to this date or date-time, wall clock of the account's zone, instead of removing it")
	set.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

const nothingChanged = "nothing was changed"

func stateReset(ctx context.Context, p *process, files []string, f resetFlags) error {
	var to time.Time
	var err error
	if f.watermark != "" {
		if to, err = definition.ParseWallTime(f.watermark); err != nil {
			return fmt.Errorf("--watermark: %w", err)
		}
	}
	if !f.yes { // even where there is nothing to reset, so that a job that cannot answer fails at once
		if err := p.attended(nothingChanged); err != nil {
			return err
		}
	}
	defs, o, err := p.openOutputs(ctx, &f.DefinitionFlags, files, withoutKey)
	if err != nil {
		return err
	}
	if !f.yes {
		state, unread := maintain.State(ctx, defs[0], o)
		if unread != nil && len(state.Forms) == 0 {
			return unread
		}
		if question := resetQuestion(state, load.Wall(to), unread != nil); question != "" {
			agreed, err := p.confirm(ctx, question, nothingChanged)
			if err != nil || !agreed {
				return err
			}
		}
		o.Forms = nil
		for _, form := range state.Forms { // no other forms than were asked about
			o.Forms = append(o.Forms, form.Form)
		}
	}
	report, failed := maintain.ResetState(ctx, defs[0], o, to)
	if err := showReset(p, report, failed != nil); err != nil {
		return err
	}
	return failed
}

// resetQuestion says what is about to be done, "" where there is nothing. unread tells that
// something could not be looked at.
func resetQuestion(s *maintain.StateReport, to load.WallTime, unread bool) string {
	datasets := 0
	for _, form := range s.Forms {
		for _, out := range form.Outputs {
			if w := out.Watermark(); !w.IsZero() && !w.Equal(to.Time) {
				datasets++
			}
		}
	}
	if datasets+len(s.Checkpoints) == 0 && !unread {
		return ""
	}
	var b strings.Builder
	if datasets > 0 {
		from := "the beginning"
		if !to.IsZero() {
			from = to.String()
		}
		fmt.Fprintf(&b, "Set the watermark of %s of pipeline %s back to %s?", console.Plural(datasets, "dataset"), plain.Line(s.Pipeline), from)
	} else {
		fmt.Fprintf(&b, "Reset pipeline %s?", plain.Line(s.Pipeline))
	}
	if len(s.Checkpoints) > 0 {
		b.WriteString(" What runs that ended early had read is dropped.")
	}
	return b.String() + " No data is removed. [y/N] "
}

// showReset prints what was done, and sums it up on standard error.
func showReset(p *process, r *maintain.ResetReport, failed bool) error {
	var rows [][]string
	marks, commits := 0, 0
	for _, out := range r.Outputs {
		if c := out.Recovery; c.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, runCell(c.RunID), recoveryWord(c, false)})
		}
		if out.Recovery.Finished {
			commits++
		}
		if !out.Before.Equal(out.After.Time) {
			marks++
			to := "none"
			if !out.After.IsZero() {
				to = out.After.String()
			}
			rows = append(rows, []string{"watermark", out.Path, "was " + out.Before.String(), "now " + to})
		}
	}
	for _, s := range r.Checkpoints {
		rows = append(rows, []string{"checkpoint", "form " + s.Form, runCell(s.RunID), console.Plural(s.Windows, "window") + " dropped"})
	}
	if err := console.Table(p.stdout, rows...); err != nil || failed && len(rows) == 0 {
		return err
	}
	var told console.Counts
	told.Add(commits, "commit", "finished")
	told.Add(marks, "watermark", "set back")
	told.Add(len(r.Checkpoints), "checkpoint", "dropped")
	p.log.Tell(slog.LevelInfo, told.Or("nothing to reset"), slog.Int("watermarks", marks),
		slog.Int("checkpoints", len(r.Checkpoints)), slog.Int("finished_commits", commits))
	return nil
}
