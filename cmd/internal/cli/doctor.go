package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/doctor"
)

func doctorCommand(p *process) *cobra.Command {
	var f console.DefinitionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor DEFINITION",
		Short: "Check key, forms, zone, clocks, budget, what the service honours, destinations and disk",
		Long: `Doctor checks what a run needs, and says for each fault what to do. All checks
are made, so that one fault does not hide another.

It also asks, by at most twelve requests, what the service honours with the first
form: order and bounds of ids, bounds of dates, counts, sorting by changes,
headings and full pages. The table that it prints of that holds nothing of the
results, so that it can be shown to others. What a run needs and the service does
not honour is a fault (65); a form with few results leaves most of it not shown.

Other requests are Get Forms, and a count for up to three forms that are not
listed. All count in the budget. At each output it writes small objects below
.formetl/ and removes them again, so nothing that it makes stays.

It ends with 0 if nothing failed, also with warnings. Otherwise it ends with the
exit code of what failed. A run may warn of it and go on: a zone that is wrong is
78 here, and a run reads the results that are dated later than now.`,
		Example: `  formetl doctor feedback.yaml
  formetl doctor feedback.yaml --json | jq '.checks[] | select(.state != "ok")'
  formetl doctor feedback.yaml --json | jq .honours`,
		Args: console.OneDefinition(),
		RunE: func(cmd *cobra.Command, args []string) error { return examine(cmd.Context(), p, args, f, asJSON) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, ", instead of the definition's reference")
	set.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// examine prints the checklist of a definition. A key that is missing does not keep the
// other checks from being made.
func examine(ctx context.Context, p *process, files []string, f console.DefinitionFlags, asJSON bool) error {
	o, err := p.start(slog.LevelError, f.Options)
	if err != nil {
		return err
	}
	defs, noKey := p.load(ctx, &f, files, withKey)
	if console.ExitCode(noKey) == console.ExitUsage {
		return noKey
	}
	if noKey != nil {
		if defs, err = p.load(ctx, &f, files, withoutKey); err != nil {
			return printChecklist(p.stdout, doctor.Unreadable(files[0], err, o.Now()), asJSON)
		}
	}
	report, err := doctor.Examine(ctx, defs[0], o, noKey)
	if err != nil {
		return err
	}
	return printChecklist(p.stdout, report, asJSON)
}
