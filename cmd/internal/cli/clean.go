package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/upkeep"
)

type cleanFlags struct {
	console.DefinitionFlags
	dryRun, unlisted bool
}

func cleanCommand(p *process) *cobra.Command {
	var f cleanFlags
	cmd := &cobra.Command{
		Use:   "clean DEFINITION...",
		Short: "Remove what interrupted runs left: temporary files, unfinished uploads, checkpoints; finished data stays",
		Long: `Clean removes what interrupted runs left at the outputs and in the state folders:
temporary files, unfinished uploads, and what they had read (checkpoints), which the next
run then reads again. If a run ended while it put its files in place, clean finishes
that. It leaves alone a run that is still working, watermarks and all finished data.

Clean lists parts of a dataset that the manifest does not list, and keeps them;
with --unlisted it removes them without asking. If the manifest is lost, no part is
listed, and --unlisted would remove the whole dataset. Then use
` + "`formetl run DEFINITION --full`" + `: it reads everything again and replaces all parts.

It asks the service only which forms match a definition's patterns, and not with --form.`,
		Example: `  formetl clean feedback.yaml --dry-run
  formetl clean feedback.yaml
  formetl clean feedback.yaml --unlisted`,
		Args: console.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return clean(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.dryRun, "dry-run", false, "only list what would be removed")
	set.BoolVar(&f.unlisted, "unlisted", false, "also remove parts of a dataset that its manifest does not list; without a manifest the whole dataset: try --dry-run first")
	f.RegisterForms(set)
	f.RegisterKey(set, keyForForms)
	return cmd
}

// clean cleans the outputs of definitions, one after the other. A definition
// that fails does not stop the others.
func clean(ctx context.Context, p *process, files []string, f cleanFlags) error {
	defs, options, err := p.openOutputs(ctx, &f.DefinitionFlags, files, withoutKey)
	if err != nil {
		return err
	}
	result := &cleanResult{dryRun: f.dryRun}
	var failures []error
	for _, def := range defs {
		if ctx.Err() != nil {
			failures = append(failures, context.Cause(ctx))
			break
		}
		report, err := upkeep.Clean(ctx, def, options, load.CleanOptions{DryRun: f.dryRun, Unlisted: f.unlisted})
		if err != nil && len(defs) > 1 {
			err = fmt.Errorf("%s: %w", def.Name, err)
		}
		if err != nil {
			failures = append(failures, err)
		}
		if err := console.Table(p.stdout, result.add(report)...); err != nil {
			return err
		}
	}
	result.tell(p.log, len(failures) > 0)
	return failed(len(defs), failures)
}

// cleanResult sums up what clean found at the outputs of definitions. In a dry run it tells what
// clean would do without --dry-run.
type cleanResult struct {
	dryRun                             bool
	checkpoints                        int   // checkpoints of dead runs in the state folders
	removed, kept, finished, withdrawn int   // leftovers (removed, kept) and commits of all outputs
	bytes                              int64 // bytes of what was removed
}

// add adds the report of a definition to the sums, and returns the report's rows of the table.
func (r *cleanResult) add(report *upkeep.CleanReport) (rows [][]string) {
	removed := "removed"
	if r.dryRun {
		removed = "would remove"
	}
	r.checkpoints += report.Checkpoints
	for _, out := range report.Outputs {
		if commit := out.Recovery; commit.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, "-", runCell(commit.RunID), "-", recoveryWord(commit, r.dryRun)})
			if commit.Finished || r.dryRun {
				r.finished++
			} else {
				r.withdrawn++
			}
		}
		for _, l := range out.Removed {
			rows = append(rows, append(leftoverCells(l), removed))
			r.bytes += max(l.Bytes, 0)
		}
		for _, k := range out.Kept {
			rows = append(rows, append(leftoverCells(k.Leftover), "kept: "+k.Why))
		}
		r.removed, r.kept = r.removed+len(out.Removed), r.kept+len(out.Kept)
	}
	return rows
}

// tell prints the sums on standard error. After a failure it does not say that there is
// nothing to clean, because not every output was looked at.
func (r *cleanResult) tell(log *console.Log, failed bool) {
	did := func(verb string) string {
		if r.dryRun {
			return "would be " + verb
		}
		return verb
	}
	var told console.Counts
	told.Add(r.finished, "interrupted write", did("finished"))
	told.Add(r.withdrawn, "interrupted write", "undone")
	total := ""
	if r.bytes > 0 {
		total = " (" + console.Size(r.bytes) + ")"
	}
	told.Add(r.removed, "leftover", did("removed")+total)
	told.Add(r.checkpoints, "checkpoint", "of interrupted runs "+did("removed")+" (the next run reads that again)")
	told.Add(r.kept, "leftover", "kept")
	if len(told) == 0 && failed {
		return
	}
	log.Tell(slog.LevelInfo, told.Or("nothing to clean: no interrupted run left anything"), slog.Bool("dry_run", r.dryRun), slog.Int("removed", r.removed), slog.Int64("bytes", r.bytes),
		slog.Int("kept", r.kept), slog.Int("finished_commits", r.finished), slog.Int("checkpoints", r.checkpoints))
}

// recoveryWord says what clean did with a commit that a dead run had recorded.
func recoveryWord(r load.Recovery, dryRun bool) string {
	switch {
	case dryRun:
		return "would finish"
	case r.Finished:
		return "finished"
	}
	return "undone, because it could not be finished"
}

func leftoverCells(l load.Leftover) []string {
	bytes, since := "-", "-"
	if l.Bytes >= 0 {
		bytes = console.Size(l.Bytes)
	}
	if !l.Since.IsZero() {
		since = "since " + l.Since.UTC().Format(time.RFC3339)
	}
	return []string{string(l.Kind), l.Path, bytes, runCell(l.Run), since}
}

// runCell returns a run's id as a cell of a table, "-" if there is no run.
func runCell(run string) string {
	if run == "" {
		return "-"
	}
	return "run " + run
}
