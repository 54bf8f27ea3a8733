package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// reply is what a command prints of the service's answer: value with --json,
// else rows.
type reply struct {
	value any
	rows  [][]string
}

// askCommand completes a command that sends one transaction. form is where
// --form goes, nil for a command that is about no form. ask is called after
// flags and arguments were checked.
func askCommand(p *process, cmd *cobra.Command, form *string, ask func(context.Context, extract.Client) (reply, error)) *cobra.Command {
	var service flags.Service
	var asJSON bool
	service.Register(cmd.Flags())
	if form != nil {
		cmd.Flags().StringVar(form, "form", "", "the form's directory")
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Args = flags.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if form != nil {
			if err := flags.CheckForm(*form); err != nil {
				return err
			}
		}
		source, err := service.Source(p.lookup)
		if err != nil {
			return err
		}
		p.log.HideKey(source.Key)
		o, err := p.start(slog.LevelWarn, new(flags.Range).Options)
		if err != nil {
			return err
		}
		state, _, _ := flags.StateFolder("") // without it, no budget is remembered
		client, err := account.NewClient(&definition.Definition{Source: source, State: state}, o)
		if err != nil {
			return err
		}
		defer client.Close()
		a, err := ask(cmd.Context(), client)
		switch {
		case err != nil:
			return err
		case asJSON:
			return show.JSON(p.stdout, a.value)
		}
		return show.Table(p.stdout, a.rows...)
	}
	return cmd
}
