package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/maintain"
)

func stateCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show or reset watermarks and what is under way",
		Long: `State shows what runs of a definition left for the next one, and sets it back.
Neither command asks the service for anything or needs an API key, unless the
definition has globs and no --form is given: then it asks for the forms.`,
		Example: `  formetl state show feedback.yaml
  formetl state reset feedback.yaml`,
		Args: console.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(stateShowCommand(p), stateResetCommand(p))
	return cmd
}

func stateShowCommand(p *process) *cobra.Command {
	var f console.DefinitionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show watermarks, runs under way or ended early, and the budget",
		Long: `Show tells for each form and output up to when results were read (the
watermark) and changes of them are known, what the last run wrote, whether a run
is under way or ended early, and what is booked of the request budget. It takes
no lease and changes nothing.`,
		Example: `  formetl state show feedback.yaml
  formetl state show feedback.yaml --form form1
  formetl state show feedback.yaml --json | jq -r '.forms[].outputs[].watermark'`,
		Args: console.OneDefinition(),
		RunE: func(cmd *cobra.Command, args []string) error { return stateShow(cmd.Context(), p, args, f, asJSON) },
	}
	f.RegisterForms(cmd.Flags())
	f.RegisterKey(cmd.Flags(), keyForForms)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func stateShow(ctx context.Context, p *process, files []string, f console.DefinitionFlags, asJSON bool) error {
	defs, o, err := p.openOutputs(ctx, &f, files, withoutKey)
	if err != nil {
		return err
	}
	report, failed := maintain.State(ctx, defs[0], o)
	if failed != nil && len(report.Forms) == 0 {
		return failed
	}
	if asJSON {
		err = console.JSON(p.stdout, stateJSONOf(report))
	} else {
		var b bytes.Buffer
		writeState(&b, report)
		err = console.Print(p.stdout, b.Bytes())
	}
	if err != nil {
		return err
	}
	return failed
}
