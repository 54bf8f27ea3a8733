package cli

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/states"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/maintain"
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
uploads, temporary files, and checkpoints, so that the next run begins anew
instead of resuming from a run that ended early. A commit that a dead run left
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
	defs, options, err := p.open(ctx, &f.Definition, files, slog.LevelWarn, withoutKey)
	if err != nil {
		return err
	}
	for i, def := range defs {
		if !account.NeedsForms(def, options) {
			continue
		}
		again, err := p.load(ctx, &f.Definition, files[i:i+1], withKey)
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
		report, err := maintain.Clean(ctx, def, options, load.CleanOptions{DryRun: f.dryRun, Unlisted: f.unlisted})
		if err != nil {
			failures = append(failures, named(def, len(defs) > 1, err))
		}
		rows := result.add(report)
		if !f.json {
			if err := show.Table(p.stdout, rows...); err != nil {
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

func recoveryWord(r load.Recovery, dryRun bool) string {
	switch {
	case dryRun:
		return "would finish"
	case r.Finished:
		return "finished"
	}
	return "taken back: it could not be finished"
}

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

func runCell(run string) string {
	if run == "" {
		return "-"
	}
	return "run " + run
}

// tellCleaned sums up on standard error. Where something failed it does not say
// that there is nothing to clean, because not everything was looked at.
func tellCleaned(log *telemetry.Log, r cleanJSON, failed bool) {
	did := func(verb string) string {
		if r.DryRun {
			return "would be " + verb
		}
		return verb
	}
	var told show.Counts
	told.Add(r.finished, "commit", did("finished"))
	told.Add(r.withdrawn, "commit", "taken back")
	total := ""
	if r.bytes > 0 {
		total = " (" + show.Size(r.bytes) + ")"
	}
	told.Add(r.removed, "leftover", did("removed")+total)
	told.Add(r.Checkpoints, "checkpoint", "of dead runs "+did("removed"))
	told.Add(r.letters, "file", "of old dead letters "+did("removed"))
	told.Add(r.kept, "leftover", "kept"+r.why())
	told.Add(r.others, "upload", "of others left alone")
	if len(told) == 0 && failed {
		return
	}
	log.Tell(slog.LevelInfo, told.Or("nothing to clean"), slog.Bool("dry_run", r.DryRun), slog.Int("removed", r.removed), slog.Int64("bytes", r.bytes),
		slog.Int("kept", r.kept), slog.Int("finished_commits", r.finished), slog.Int("checkpoints", r.Checkpoints))
}

// cleanJSON is what clean --json prints. In a dry run it tells what a run without
// --dry-run would do.
type cleanJSON struct {
	DryRun  bool          `json:"dry_run"`
	Outputs []cleanedJSON `json:"outputs"`
	// Checkpoints counts those of dead runs in the state folders.
	Checkpoints int `json:"checkpoints"`

	letters                                    int   // files of old dead letters in the state folders
	removed, kept, others, finished, withdrawn int   // of all outputs
	bytes                                      int64 // of what was removed
}

type cleanedJSON struct {
	Pipeline  string            `json:"pipeline"`
	Path      string            `json:"path"`
	Removed   []states.Leftover `json:"removed"`
	Kept      []states.Leftover `json:"kept"`
	Others    int               `json:"others"` // uploads whose owner cannot be told
	Finished  *string           `json:"finished_commit"`
	Withdrawn *string           `json:"withdrawn_commit,omitempty"` // could not be finished any more
	Error     string            `json:"error,omitempty"`
}

// add adds the report of a definition, and gives its rows for people.
func (c *cleanJSON) add(r *maintain.CleanReport) (rows [][]string) {
	removed := "removed"
	if c.DryRun {
		removed = "would remove"
	}
	c.Checkpoints += r.Checkpoints
	c.letters += r.Letters
	for _, out := range r.Outputs {
		j := cleanedJSON{
			Pipeline: r.Pipeline, Path: out.Path, Removed: []states.Leftover{}, Kept: []states.Leftover{}, Others: out.Others,
		}
		if commit := out.Recovery; commit.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, "-", runCell(commit.RunID), "-", recoveryWord(commit, c.DryRun)})
			if commit.Finished || c.DryRun {
				j.Finished = &commit.RunID
				c.finished++
			} else {
				j.Withdrawn = &commit.RunID
				c.withdrawn++
			}
		}
		for _, l := range out.Removed {
			rows = append(rows, append(leftoverCells(l), removed))
			j.Removed = append(j.Removed, states.LeftoverOf(l, ""))
			c.bytes += max(l.Bytes, 0)
		}
		for _, k := range out.Kept {
			rows = append(rows, append(leftoverCells(k.Leftover), "kept: "+k.Why))
			j.Kept = append(j.Kept, states.LeftoverOf(k.Leftover, k.Why))
		}
		c.removed, c.kept, c.others = c.removed+len(out.Removed), c.kept+len(out.Kept), c.others+out.Others
		if out.Err != nil {
			j.Error = out.Err.Error()
		}
		c.Outputs = append(c.Outputs, j)
	}
	return rows
}

// why says why leftovers were kept, if all were kept for one reason.
func (c *cleanJSON) why() string {
	var reasons []string
	for _, out := range c.Outputs {
		for _, k := range out.Kept {
			reasons = append(reasons, k.Why)
		}
	}
	slices.Sort(reasons)
	if reasons = slices.Compact(reasons); len(reasons) != 1 {
		return ""
	}
	return ", because " + reasons[0]
}
