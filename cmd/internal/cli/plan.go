package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/planned"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
)

type planFlags struct {
	flags.Definition
	json, offline, full bool
}

func planCommand(p *process) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan DEFINITION",
		Short: "Show what a run would do: windows, results, requests, time",
		Long: `Plan shows the windows that a run would read, the results and requests to
expect, the minutes that they take under the definition's budget and their
share of the day's quota. It sends count requests only, and Get Forms where the
definition has globs; with --offline it sends nothing and needs no key.

An incremental run asks the service what changed since the last one, and reads
the parts that hold it. Only the run itself can ask that: the plan shows what
is read if nothing changed.`,
		Example: `  formetl plan feedback.yaml
  formetl plan feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl plan feedback.yaml --json | jq '.forms[].requests.total'
  formetl plan feedback.yaml --offline`,
		Args: flags.OneDefinition(),
		RunE: func(cmd *cobra.Command, args []string) error { return plan(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	f.Register(set)
	set.BoolVar(&f.json, "json", false, "print the plan as JSON, with every window")
	set.BoolVar(&f.offline, "offline", false, "send no request")
	set.BoolVar(&f.full, "full", false, "as a run with --full would go about it")
	return cmd
}

// plan shows the plans of definitions; run --dry-run gives several.
func plan(ctx context.Context, p *process, files []string, f planFlags) error {
	defs, options, err := p.open(ctx, &f.Definition, files, slog.LevelWarn, !f.offline)
	if err != nil {
		return err
	}
	options.Full = f.full
	var failures []error
	for i, def := range defs {
		report, err := pipelines.MakePlan(ctx, def, options, f.offline)
		failures = append(failures, err)
		if f.json {
			err = show.JSON(p.stdout, report)
		} else {
			var b bytes.Buffer
			if i > 0 {
				b.WriteByte('\n')
			}
			planned.Write(&b, report)
			err = show.Print(p.stdout, b.Bytes())
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}
