package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/demo"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/cmd/internal/wizard"
	"github.com/formetl/formetl/pipelines/definition"
)

func initCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init [-o FILE]",
		Short: "Write a first definition, by questions or flags",
		Long: `Init asks what a definition has to know: service, account, where the API key is,
forms, time zone, output and columns. It tries the answers at the service, writes
the definition with a schema file, shows the plan, and offers the first run.

Each question has a flag. What flags answer is not asked. Without a terminal, and
with --no-input, nothing is asked and what is proposed is taken.

The key itself is never asked for and written nowhere. Before the plan, init asks
for the forms, for the newest results, and for a sample of the results where it
infers a schema. On a terminal it also counts the results of up to 20 forms.`,
		Example: `  formetl init
  formetl init --base-url https://fs1.example.com --account acme --form form1 --no-input
  formetl init --form form1 --kind dataset --path s3://bucket/lake/{form}/ -o form1.yaml
  formetl init --form '*' --timezone America/Chicago --format parquet --no-input --run`,
		Args: flags.NoArguments,
	}
	f := wizard.Register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), p, f) }
	return cmd
}

func runInit(ctx context.Context, p *process, f *wizard.Flags) error {
	o := wizard.Options{
		Load:    definition.LoadOptions{Secrets: *p.secrets(ctx), Formats: formats(), Schemes: schemes()},
		Tell:    func(text string) { p.log.Tell(slog.LevelInfo, text) },
		HideKey: p.log.HideKey,
	}
	var err error
	if o.Account, err = p.start(slog.LevelWarn, new(flags.Range).Options); err != nil {
		return err
	}
	if !f.NoInput && show.IsTerminal(p.stdin) && show.IsTerminal(p.stderr) && !p.log.JSON() {
		o.Ask = wizard.Terminal(p.stdin, p.stderr, p.lookup)
	}
	made, err := wizard.Begin(ctx, f, o)
	if err != nil {
		return err
	}
	files := []string{made.File()}
	if err := plan(ctx, p, files, planFlags{}); err != nil {
		return err
	}
	switch wanted, err := made.WantsRun(ctx); {
	case err != nil:
		return err
	case wanted:
		return run(ctx, p, files, runFlags{watch: watchFlags{progress: telemetry.ProgressAuto}})
	}
	p.log.Tell(slog.LevelInfo, "\nNext:\n  "+demo.Callable()+" validate "+demo.Quoted(made.File())+"\n  "+demo.Callable()+" run "+demo.Quoted(made.File()))
	return nil
}
