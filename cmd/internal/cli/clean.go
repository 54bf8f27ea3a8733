package cli

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

type cleanFlags struct {
	flags.Definition
	json, dryRun, unlisted bool
}

func cleanCommand(p *process) *cobra.Command {
	var f cleanFlags
	cmd := &cobra.Command{
		Use:   "clean DEFINITION...",
		Short: "Remove what dead runs left: staged files, unfinished uploads",
		Long: `Clean lists what runs left at the outputs of definitions, and in their state
folders, and removes what belongs to dead runs: staged files and unfinished
uploads, temporary files, and journals, so that the next run begins anew
instead of going on with a run that ended early. A commit that a dead run left
recorded is finished. What belongs to a run that is alive stays, and committed
data is never touched.

Parts of a dataset that its manifest does not list are told and kept; with
--unlisted they are removed. Where the manifest is lost, these are all parts:
` + "`formetl run --full`" + ` replaces them instead.

It asks the service for nothing and needs no API key, unless the definition has
globs and no --form is given: then it asks for the forms.`,
		Example: `  formetl clean feedback.yaml --dry-run
  formetl clean feedback.yaml
  formetl clean feedback.yaml --unlisted
  formetl clean a.yaml b.yaml --json | jq '.outputs[].removed'`,
		Args: flags.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return clean(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.dryRun, "dry-run", false, "list what would be removed and change nothing")
	set.BoolVar(&f.unlisted, "unlisted", false, "remove parts, too, that no manifest lists: all of a dataset whose manifest is lost")
	set.BoolVar(&f.json, "json", false, "print one JSON object")
	f.RegisterForms(set)
	f.RegisterKey(set, ", where the forms must be asked for")
	return cmd
}

// clean cleans the outputs of definitions, one after the other. A definition
// that fails does not stop the others.
func clean(ctx context.Context, p *process, files []string, f cleanFlags) error {
	defs, options, err := p.open(&f.Definition, files, slog.LevelWarn, withoutKey)
	if err != nil {
		return err
	}
	for i, def := range defs {
		if !pipelines.NeedsForms(def, options) {
			continue
		}
		again, err := p.load(&f.Definition, files[i:i+1], withKey)
		if err != nil {
			return err
		}
		defs[i] = again[0]
	}
	result := cleanJSON{DryRun: f.dryRun, Outputs: []cleanedJSON{}}
	var failures []error
	for _, def := range defs {
		if ctx.Err() != nil {
			failures = append(failures, context.Cause(ctx))
			break
		}
		report, err := pipelines.Clean(ctx, def, options, load.CleanOptions{DryRun: f.dryRun, Unlisted: f.unlisted})
		if err != nil {
			failures = append(failures, named(def, len(defs) > 1, err))
		}
		result.add(report)
		if !f.json {
			if err := show.Table(p.stdout, cleanRows(report, f.dryRun)...); err != nil {
				return err
			}
		}
	}
	if !f.json {
		tellCleaned(p.log, result, len(failures) > 0)
	} else if err := show.JSON(p.stdout, result); err != nil {
		return err
	}
	return failed(len(defs), failures)
}

// cleanRows are what was found, for people.
func cleanRows(r *pipelines.CleanReport, dryRun bool) [][]string {
	removed := "removed"
	if dryRun {
		removed = "would remove"
	}
	var rows [][]string
	for _, out := range r.Outputs {
		if c := out.Recovery; c.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, "-", runCell(c.RunID), "-", recoveryWord(c, dryRun)})
		}
		for _, l := range out.Removed {
			rows = append(rows, append(leftoverCells(l), removed))
		}
		if j := out.Journal; j != nil {
			rows = append(rows, []string{"journal", out.Path, show.Plural(j.Parts, "part"), runCell(j.RunID), "-", removed})
		}
		for _, k := range out.Kept {
			rows = append(rows, append(leftoverCells(k.Leftover), "kept: "+k.Why))
		}
	}
	return rows
}

// recoveryWord says what became of a recorded commit.
func recoveryWord(r load.Recovery, dryRun bool) string {
	switch {
	case dryRun:
		return "would finish"
	case r.Finished:
		return "finished"
	}
	return "taken back: it could not be finished"
}

// leftoverCells are the first five columns of cleanRows.
func leftoverCells(l load.Leftover) []string {
	bytes, since := "-", "-"
	if l.Bytes >= 0 {
		bytes = show.Size(l.Bytes)
	}
	if !l.Since.IsZero() {
		since = "since " + l.Since.UTC().Format(time.RFC3339)
	}
	return []string{string(l.Kind), l.Path, bytes, runCell(l.Run), since}
}

// runCell names a run in a table.
func runCell(run string) string {
	if run == "" {
		return "-"
	}
	return "run " + run
}

// tellCleaned sums up on standard error. Where something failed it does not say
// that there is nothing to clean, because not everything was looked at.
func tellCleaned(log *telemetry.Log, r cleanJSON, failed bool) {
	s := r.sum()
	did := func(verb string) string {
		if r.DryRun {
			return "would be " + verb
		}
		return verb
	}
	var parts countList
	parts.add(s.finished, "commit", did("finished"))
	parts.add(s.withdrawn, "commit", "taken back")
	removed := did("removed")
	if s.bytes > 0 {
		removed += " (" + show.Size(s.bytes) + ")"
	}
	parts.add(s.removed, "leftover", removed)
	parts.add(s.journals, "journal", did("closed"))
	parts.add(r.Spools, "spool", "of dead runs "+did("removed"))
	parts.add(s.kept, "leftover", "kept")
	parts.add(s.others, "upload", "of others left alone")
	text := "nothing to clean"
	switch {
	case len(parts) > 0:
		text = strings.Join(parts, "; ")
	case failed:
		return
	}
	log.Tell(slog.LevelInfo, text, slog.Bool("dry_run", r.DryRun), slog.Int("removed", s.removed), slog.Int64("bytes", s.bytes),
		slog.Int("kept", s.kept), slog.Int("finished_commits", s.finished), slog.Int("journals", s.journals), slog.Int("spools", r.Spools))
}

// countList is a list such as "1 commit finished; 3 leftovers removed".
type countList []string

// add adds a number and what became of it, unless it is 0.
func (l *countList) add(n int, noun, became string) {
	if n > 0 {
		*l = append(*l, show.Plural(n, noun)+" "+became)
	}
}
