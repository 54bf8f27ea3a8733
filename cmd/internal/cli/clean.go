package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/cleaned"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/maintain"
)

type cleanFlags struct {
	flags.Definition
	dryRun, unlisted bool
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
  formetl clean feedback.yaml --unlisted`,
		Args: flags.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return clean(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.dryRun, "dry-run", false, "list what would be removed and change nothing")
	set.BoolVar(&f.unlisted, "unlisted", false, "remove parts, too, that no manifest lists: all of a dataset whose manifest is lost")
	f.RegisterForms(set)
	f.RegisterKey(set, keyForForms)
	return cmd
}

// clean cleans the outputs of definitions, one after the other. A definition
// that fails does not stop the others.
func clean(ctx context.Context, p *process, files []string, f cleanFlags) error {
	defs, options, err := p.openOutputs(ctx, &f.Definition, files, withoutKey)
	if err != nil {
		return err
	}
	result := cleaned.New(f.dryRun)
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
		if err := show.Table(p.stdout, result.Add(report)...); err != nil {
			return err
		}
	}
	result.Tell(p.log, len(failures) > 0)
	return failed(len(defs), failures)
}
