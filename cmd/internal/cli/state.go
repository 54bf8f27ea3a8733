package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/pipelines"
)

func stateCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show or reset watermarks and what is under way",
		Long: `State shows what runs of a definition left for the next one, and sets it back.
Neither command asks the service for anything or needs an API key.`,
		Example: `  formetl state show feedback.yaml
  formetl state reset feedback.yaml`,
		Args: flags.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(stateShowCommand(p), stateResetCommand(p))
	return cmd
}

// openState starts a command on the state of a definition, which it reads
// without its key.
func openState(p *process, f *flags.Definition, files []string) (*pipelines.Definition, pipelines.Options, error) {
	defs, o, err := p.open(f, files, slog.LevelWarn, withoutKey)
	if err != nil {
		return nil, o, err
	}
	return defs[0], o, nil
}
