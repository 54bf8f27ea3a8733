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

type cleanFlags struct {
	definitionFlags
	json, dryRun, unlisted bool
}

func (a *app) cleanCommand() *cobra.Command {
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
		Args: definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return a.clean(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "list what would be removed and change nothing")
	flags.BoolVar(&f.unlisted, "unlisted", false, "remove parts, too, that no manifest lists: all of a dataset whose manifest is lost")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.StringArrayVar(&f.forms, "form", nil, "only this form of the definition; repeatable")
	flags.StringVar(&f.state, "state", "", "folder of budgets and spool (default: the definition's)")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file that holds the API key, where the forms must be asked for")
	return cmd
}

// clean cleans the outputs of definitions, one after the other. One that
// fails does not stop the others.
func (a *app) clean(ctx context.Context, files []string, f cleanFlags) error {
	log, err := a.begin(levelWarn)
	if err != nil {
		return err
	}
	options := pipelines.Options{Tables: tables(), Forms: f.forms, Client: clientOptions(), Logger: log.Logger}
	options.Tables.Open = opener(log.Logger)
	defs, err := f.loadForCleaning(a, files, options)
	if err != nil {
		return err
	}
	result := cleanJSON{DryRun: f.dryRun, Outputs: []cleanedJSON{}}
	failed := &pipelines.FormsError{Forms: len(defs)}
	for _, def := range defs {
		if ctx.Err() != nil {
			failed.Errors = append(failed.Errors, context.Cause(ctx))
			break
		}
		report, err := pipelines.Clean(ctx, def, options, load.CleanOptions{DryRun: f.dryRun, Unlisted: f.unlisted})
		if err != nil {
			if len(defs) > 1 {
				err = fmt.Errorf("%s: %w", def.Name, err)
			}
			failed.Errors = append(failed.Errors, err)
		}
		result.add(report)
		if !f.json {
			if err := a.printTable(cleanRows(report, f.dryRun)...); err != nil {
				return err
			}
		}
	}
	if f.json {
		if err := a.printJSON(result); err != nil {
			return err
		}
	} else {
		a.tellCleaned(result, len(failed.Errors) > 0)
	}
	switch len(failed.Errors) {
	case 0:
		return nil
	case 1:
		return failed.Errors[0]
	}
	return failed
}

// loadForCleaning reads definitions, without the key where it is not needed.
func (f *cleanFlags) loadForCleaning(a *app, files []string, o pipelines.Options) ([]*definition.Definition, error) {
	defs, err := f.load(a, files, withoutSecrets)
	if err != nil {
		return nil, err
	}
	for i, def := range defs {
		if !pipelines.NeedsForms(def, o) {
			continue
		}
		again, err := f.load(a, files[i:i+1], withSecrets)
		if err != nil {
			return nil, err
		}
		defs[i] = again[0]
	}
	return defs, nil
}

// cleanRows show to people what was found: a line for each.
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
		for _, k := range out.Kept {
			rows = append(rows, append(leftoverCells(k.Leftover), "kept: "+k.Why))
		}
	}
	return rows
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
		bytes = size(l.Bytes)
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

// tellCleaned sums up on standard error. What failed is told as an error: there
// may be more to clean than was found.
func (a *app) tellCleaned(r cleanJSON, failed bool) {
	s := r.sum()
	did := func(verb string) string {
		if r.DryRun {
			return "would be " + verb
		}
		return verb
	}
	var parts []string
	note := func(n int, noun, what string) {
		if n > 0 {
			parts = append(parts, plural(n, noun)+" "+what)
		}
	}
	note(s.finished, "commit", did("finished"))
	note(s.withdrawn, "commit", "taken back")
	removed := did("removed")
	if s.bytes > 0 {
		removed += " (" + size(s.bytes) + ")"
	}
	note(s.removed, "leftover", removed)
	note(r.Checkpoints, "checkpoint", "of dead runs "+did("removed"))
	note(s.kept, "leftover", "kept")
	note(s.others, "upload", "of others left alone")
	text := "nothing to clean"
	switch {
	case len(parts) > 0:
		text = strings.Join(parts, "; ")
	case failed:
		return
	}
	a.logs.tell(slog.LevelInfo, text, slog.Bool("dry_run", r.DryRun), slog.Int("removed", s.removed), slog.Int64("bytes", s.bytes),
		slog.Int("kept", s.kept), slog.Int("finished_commits", s.finished), slog.Int("checkpoints", r.Checkpoints))
}
