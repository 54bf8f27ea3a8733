package wizard

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
)

// Command is the command init, with a flag for each question. run is called after flags
// and arguments were checked.
func Command(run func(context.Context, *Flags) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init [-o FILE]",
		Short: "Write a first definition, by questions or flags",
		Long: `Init asks what a definition has to know: service, account, where the API key is,
forms, time zone, outputs and columns. It tries the answers at the service, writes
the definition with a schema file, shows the plan, and offers the first run.

Each question has a flag. What flags answer is not asked. Without a terminal, and
with --no-input, nothing is asked and what is proposed is taken.

Flags of an output are repeated for several outputs, each with its own --path. A
flag that is given once is then for all outputs that it suits.

The key itself is never asked for and written nowhere. Before the plan, init asks
for the forms, for the newest results, and for a sample of the results where it
infers a schema. On a terminal it also counts the results of up to 20 forms.`,
		Example: `  formetl init
  formetl init --base-url https://fs1.example.com --account acme --form form1 --no-input
  formetl init --form form1 --path 's3://bucket/lake/{form}/' -o form1.yaml
  formetl init --form form1 --path 'out/{form}.csv' --path 'lake/{form}/' --partition day
  formetl init --form '*' --timezone America/Chicago --format parquet --run`,
		Args: flags.NoArguments,
	}
	f := register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) }
	return cmd
}
