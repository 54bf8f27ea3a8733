package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/built"
	"github.com/formetl/formetl/cmd/internal/demo"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/cmd/internal/wizard"
	"github.com/formetl/formetl/pipelines/definition"
)

func initCommand(p *process) *cobra.Command {
	return wizard.Command(func(ctx context.Context, f *wizard.Flags) error {
		tell := func(text string) { p.log.Tell(slog.LevelInfo, text) }
		o := wizard.Options{Tell: tell, HideKey: p.log.HideKey}
		o.Load = built.Checks(ctx, p.lookup)
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
		next := demo.Callable() + " run " + definition.ShellWord(made.File())
		p.goOn = "run `" + next + "`"
		files := []string{made.File()}
		if err := plan(ctx, p, files, planFlags{}); err != nil {
			return err
		}
		if wanted, err := made.WantsRun(ctx); wanted || err != nil {
			if err == nil {
				err = run(ctx, p, files, runFlags{watch: watchFlags{progress: telemetry.ProgressAuto}})
			}
			return err
		}
		tell("\nNext:\n  " + demo.Callable() + " validate " + definition.ShellWord(made.File()) + "\n  " + next)
		return nil
	})
}
