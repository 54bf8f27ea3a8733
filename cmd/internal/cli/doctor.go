package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas/plain"
)

func doctorCommand(p *process) *cobra.Command {
	var f console.DefinitionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor DEFINITION",
		Short: "Check what a run needs: API key, forms, time zone, clocks, budget, service, outputs, disk",
		Long: `Doctor checks what a run needs, and says what to do about each problem. It makes
all checks, so that one problem does not hide another.

With at most twelve requests it tests on the first form whether the service does what
its specification says. It prints a table of the answers (in JSON: honours), which holds
nothing from the results, so you can show it to others. If the service does not do what
a run needs, doctor ends with 65. Tests that need more results than the form has are not
made, which is no failure.

A few more requests ask for the forms; all requests count against the budget. At the
outputs of the first form it writes small files below .formetl/, and removes them again.

It ends with 0 if no check failed, even if there are warnings. Otherwise it ends with
the gravest exit code of those that failed. For a wrong time zone, which only API v1 shows,
doctor ends with 78; a run goes on with wrong times, and warns at most of future dates.`,
		Example: `  formetl doctor feedback.yaml
  formetl doctor feedback.yaml --json | jq '.checks[] | select(.state != "ok")'
  formetl doctor feedback.yaml --json | jq .honours`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return examine(cmd.Context(), p, args, f, asJSON) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, ", instead of the definition's reference")
	set.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// examine prints the checklist of a definition. If the API key is missing, the checks that need
// no key are made all the same.
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
			return printChecklist(p.stdout, upkeep.Unreadable(files[0], err, o.Now()), asJSON)
		}
	}
	report, err := upkeep.Examine(ctx, defs[0], o, noKey)
	if err != nil {
		return err
	}
	return printChecklist(p.stdout, report, asJSON)
}

// checklist is a Checklist with the verdict of the command doctor. It is printed as JSON.
type checklist struct {
	*upkeep.Checklist
	Healthy  bool        `json:"healthy"`   // no check failed
	ExitCode int         `json:"exit_code"` // the exit code of the command
	Counts   checkCounts `json:"counts"`
	Checks   []checked   `json:"checks"`
}

// checkCounts counts the checks by how they ended.
type checkCounts struct {
	OK         int `json:"ok"`
	Warnings   int `json:"warnings"`
	Failed     int `json:"failed"`
	NotChecked int `json:"not_checked"`
}

// checked is one check with the exit code of its own failure, 0 if the check did not fail.
type checked struct {
	upkeep.Check
	ExitCode int `json:"exit_code"`
}

// printChecklist prints a checklist, and returns an error if a check failed.
func printChecklist(w io.Writer, r *upkeep.Checklist, asJSON bool) error {
	failed := r.Err()
	r.At = r.At.UTC().Truncate(time.Second)
	result := checklist{Checklist: r, Healthy: failed == nil, ExitCode: console.ExitCode(failed), Checks: make([]checked, len(r.Checks))}
	states := map[upkeep.CheckState]int{}
	for i, c := range r.Checks {
		result.Checks[i] = checked{Check: c, ExitCode: console.ExitCode(c.Err)}
		states[c.State]++
	}
	result.Counts = checkCounts{states[upkeep.OK], states[upkeep.Warning], states[upkeep.Failed], states[upkeep.NotChecked]}
	if err := console.Show(w, asJSON, result, result.Text()); err != nil {
		return err
	}
	return failed
}

// Text returns the checklist for people: a line for each check and each cure, a table of
// what the service honours, and a last line with the sums.
func (r checklist) Text() string {
	rows := make([][]string, 0, 2*len(r.Checks))
	for _, c := range r.Checks {
		text := c.Detail
		if c.Of != "" {
			text = c.Of + ": " + text
		}
		rows = append(rows, []string{string(c.State), c.Name, text})
		if c.Cure != "" {
			rows = append(rows, []string{"", "", "to fix it: " + c.Cure})
		}
	}
	text := console.Columns("", rows)
	if h := r.Honours; h != nil {
		rows := console.Rows(nil, h.Rows, func(row upkeep.Row) []string { return []string{row.Answer, row.Asked, row.Reason} })
		text += fmt.Sprintf("what the service does (API %s, form %s, tested by %s; the table holds no answers of people, so you can send it to others):\n%s",
			h.API, plain.Line(h.Form), plain.Plural(h.Requests, "request"), console.Columns("  ", rows))
	}
	text += fmt.Sprintf("%s: %d ok, %s, %d failed, %d not checked; %s sent", plain.Plural(len(r.Checks), "check"),
		r.Counts.OK, plain.Plural(r.Counts.Warnings, "warning"), r.Counts.Failed, r.Counts.NotChecked, plain.Plural(r.Requests, "request"))
	if !r.Healthy {
		text += fmt.Sprintf("; exit code %d", r.ExitCode)
	}
	return text + "\n"
}
