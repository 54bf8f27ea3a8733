package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

type planFlags struct {
	definitionFlags
	json, offline, full bool
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan DEFINITION",
		Short: "Show what a run would do: windows, results, requests, time",
		Long: `Plan shows the windows that a run would read, the results and requests to
expect, the minutes that they take under the definition's budget and their
share of the day's quota. It sends count requests only, and Get Forms where the
definition has globs; with --offline it sends nothing and needs no key.`,
		Example: `  formetl plan feedback.yaml
  formetl plan feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl plan feedback.yaml --json | jq '.forms[].requests.total'
  formetl plan feedback.yaml --offline`,
		Args: oneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return a.plan(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.BoolVar(&f.json, "json", false, "print the plan as JSON, with every window")
	flags.BoolVar(&f.offline, "offline", false, "send no request")
	flags.BoolVar(&f.full, "full", false, "as a run with --full would go about it")
	return cmd
}

// plan shows the plans of definitions, several of them as run --dry-run has them.
func (a *app) plan(ctx context.Context, files []string, f planFlags) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	options.Full = f.full
	if _, err := a.beginWith(levelWarn, &options); err != nil {
		return err
	}
	defs, err := f.load(a, files, secrets(!f.offline))
	if err != nil {
		return err
	}
	var failures []error
	for i, def := range defs {
		report, err := pipelines.MakePlan(ctx, def, options, f.offline)
		failures = append(failures, err)
		if f.json {
			err = a.printJSON(report)
		} else {
			var b bytes.Buffer
			if i > 0 {
				b.WriteByte('\n')
			}
			writePlan(&b, report)
			err = a.print(b.Bytes())
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// writePlan shows a plan to people.
func writePlan(w io.Writer, r *pipelines.PlanReport) {
	fmt.Fprintf(w, "pipeline %s", cell(r.Pipeline))
	if r.Offline {
		fmt.Fprint(w, ", without asking the service")
	}
	fmt.Fprintln(w)
	for _, p := range r.Forms {
		fmt.Fprintf(w, "\nform %s\n", cell(p.Form))
		if p.Error != "" {
			fmt.Fprintln(w, "  no plan: see the error")
			continue
		}
		writeTable(w, "  ", planRows(p))
		writeWindows(w, p.Windows)
	}
	for _, pattern := range r.Patterns {
		fmt.Fprintf(w, "\nforms that match %s: known when the service is asked\n", cell(pattern))
	}
	if len(r.Forms) > 1 && len(r.Patterns) == 0 {
		fmt.Fprintln(w, "\nall forms")
		writeTable(w, "  ", budgetRows(r.Budget))
	}
}

func planRows(p *pipelines.FormPlan) [][]string {
	windows := thousands(int64(len(p.Windows)))
	if len(p.Windows) == 0 {
		windows = "unknown until counted"
	}
	results := expected(p.Results)
	if p.AtMost && p.Results != nil {
		results = "at most " + results + " (counts know neither searches nor views)"
	}
	rows := [][]string{
		{"range", rangeText(p.Range) + ", " + p.Timezone},
		{"windows", windows},
		{"results", results},
		{"requests", requestsText(p.Requests)},
	}
	if u := p.Unfinished; u != nil {
		rows = append(rows, []string{"less", fmt.Sprintf("what the run %s had read when it ended early: %d results, %d windows whole", u.RunID, u.Results, u.Windows)})
	}
	rows = append(rows, budgetRows(p.Budget)...)
	for _, w := range p.Warnings {
		rows = append(rows, []string{"warning", w})
	}
	return rows
}

func rangeText(r load.Range) string {
	from, to := wallText(r.From), wallText(r.To)
	if r.From.IsZero() {
		from = "the first result"
	}
	return from + " to " + to + " (exclusive)"
}

func wallText(t load.WallTime) string {
	if t.IsZero() {
		return ".."
	}
	return t.Format("2006-01-02 15:04:05")
}

func requestsText(r pipelines.PlannedRequests) string {
	if r.Total == nil {
		return "unknown until counted" + atLeast(r.Least)
	}
	return fmt.Sprintf("about %s: %s for results, %s for counts, %d of them for this plan",
		thousands(*r.Total), thousands(*r.Results), thousands(*r.Counts), r.Planned)
}

// atLeast tells the requests of a plan that nothing was counted for.
func atLeast(windows *int64) string {
	if windows == nil {
		return ""
	}
	return fmt.Sprintf(", at least %s: one for each window", thousands(*windows))
}

func budgetRows(b pipelines.Budget) [][]string {
	minute, day := "no budget per minute", "no budget per day"
	switch {
	case b.PerMinute > 0 && b.Minutes == nil:
		minute = fmt.Sprintf("unknown until counted, at %s requests a minute", thousands(int64(b.PerMinute)))
	case b.PerMinute > 0 && *b.Minutes <= 1:
		minute = fmt.Sprintf("under a minute, at %s requests a minute", thousands(int64(b.PerMinute)))
	case b.PerMinute > 0:
		minute = fmt.Sprintf("about %.0f minutes, at %s requests a minute", *b.Minutes, thousands(int64(b.PerMinute)))
	}
	switch {
	case b.PerDay > 0 && b.DayShare == nil:
		day = fmt.Sprintf("unknown share of %s requests a day", thousands(int64(b.PerDay)))
	case b.PerDay > 0:
		day = fmt.Sprintf("%.1f %% of %s requests a day", 100**b.DayShare, thousands(int64(b.PerDay)))
		if *b.DayShare > 1 {
			day += ": the run will need several days"
		}
	}
	return [][]string{{"time", minute}, {"quota", day}}
}

// shownWindows is how many windows are listed at either end of a long list.
const shownWindows = 5

func writeWindows(w io.Writer, windows []pipelines.PlannedWindow) {
	if len(windows) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"FROM", "TO", "RESULTS", "REQUESTS"}}
	for i, p := range windows {
		if i == shownWindows && len(windows) > 2*shownWindows+1 {
			rows = append(rows, []string{fmt.Sprintf("... %s more ...", thousands(int64(len(windows)-2*shownWindows))), "", "", ""})
		}
		if i < shownWindows || i >= len(windows)-shownWindows || len(windows) <= 2*shownWindows+1 {
			rows = append(rows, []string{wallText(p.From), wallText(p.To), expectedOr(p.Results, "?"), expectedOr(p.Requests, "?")})
		}
	}
	var b strings.Builder
	writeTable(&b, "  ", rows)
	fmt.Fprint(w, b.String())
}

// expected shows a number that may be unknown.
func expected(n *int64) string { return expectedOr(n, "unknown until counted") }

func expectedOr(n *int64, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return thousands(*n)
}
