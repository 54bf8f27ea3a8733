package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas/plain"
)

type planFlags struct {
	console.DefinitionFlags
	json, offline, full bool
}

func planCommand(p *process) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan DEFINITION",
		Short: "Show what a run would do: windows, results, requests, time",
		Long: `Plan shows the windows (spans of time) that a run would read, how many results and
requests to expect, how many minutes the requests take with the definition's requests
per minute, and their share of its requests per day. It only asks for counts, and for
the list of forms if the definition names its forms by patterns. With --offline it
sends nothing and needs no API key.

An incremental run also reads again what changed since the last run. Plan cannot
know that, and shows what is read if nothing changed.`,
		Example: `  formetl plan feedback.yaml
  formetl plan feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl plan feedback.yaml --json | jq '.forms[].requests.total'
  formetl plan feedback.yaml --offline`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return plan(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	f.Register(set)
	set.BoolVar(&f.json, "json", false, "print the plan as JSON, with every window")
	set.BoolVar(&f.offline, "offline", false, "send no request; numbers of results and requests, and the time, are then unknown")
	set.BoolVar(&f.full, "full", false, "show what a run with --full would read: everything, not only what is new")
	return cmd
}

// plan shows the plans of definitions. The command plan gives one definition, run --dry-run several.
func plan(ctx context.Context, p *process, files []string, f planFlags) error {
	defs, options, err := p.open(ctx, &f.DefinitionFlags, files, slog.LevelWarn, !f.offline)
	if err != nil {
		return err
	}
	options.Full = f.full
	var failures []error
	for i, def := range defs {
		report, err := pipelines.MakePlan(ctx, def, options, f.offline)
		failures = append(failures, err)
		text := planText(report)
		if i > 0 {
			text = "\n" + text
		}
		if err := console.Show(p.stdout, f.json, report, text); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

func planText(r *pipelines.PlanReport) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "pipeline %s", plain.Line(r.Pipeline))
	if r.Offline {
		fmt.Fprint(w, ", planned without asking the service")
	}
	fmt.Fprintln(w)
	for _, p := range r.Forms {
		fmt.Fprintf(w, "\nform %s\n", plain.Line(p.Form))
		if p.Error != "" {
			fmt.Fprintln(w, "  no plan: see the error")
			continue
		}
		fmt.Fprint(w, console.Columns("  ", planRows(p)), windowsText(p))
	}
	for _, pattern := range r.Patterns {
		fmt.Fprintf(w, "\nforms that match %s: not known without asking the service\n", plain.Line(pattern))
	}
	if len(r.Forms) > 1 && len(r.Patterns) == 0 {
		fmt.Fprintf(w, "\nall forms\n%s", console.Columns("  ", budgetRows(r.Budget)))
	}
	return w.String()
}

func planRows(p *pipelines.FormPlan) [][]string {
	windows := plain.Thousands(len(p.Windows))
	if len(p.Windows) == 0 {
		windows = "unknown"
	}
	if p.Undated != nil {
		windows += ", and one for results without a date"
	}
	rows := [][]string{
		{"range", console.Range(p.Range) + ", " + p.Timezone},
		{"windows", windows},
		{"results", resultsText(p)},
		{"requests", requestsText(p)},
	}
	if p.Changes != nil {
		rows = append(rows, []string{"changes", plannedChangesText(p.Changes)})
	}
	if u := p.Unfinished; u != nil {
		rows = append(rows, []string{"resume", fmt.Sprintf("run %s ended early after %s and %s; if the run goes on from there, it sends at least %s less",
			u.RunID, plain.Plural(u.Results, "result"), plain.Plural(u.Windows, "complete window"), plain.Plural(u.Requests, "request"))})
	}
	rows = append(rows, budgetRows(p.Budget)...)
	for _, w := range p.Warnings {
		rows = append(rows, []string{"warning", w})
	}
	return rows
}

// resultsText says how many results a run would write.
func resultsText(p *pipelines.FormPlan) string {
	if p.Results == nil {
		return "unknown"
	}
	text := plain.Thousands(*p.Results)
	if u := p.Undated; u != nil {
		text = fmt.Sprintf("%s: %s with a date and %s without", plain.Thousands(*p.Results+u.Results), text, plain.Thousands(u.Results))
	}
	if p.AtMost {
		return "at most " + text + " (the service counts all results, not only those of the search or view)"
	}
	return text
}

func requestsText(p *pipelines.FormPlan) string {
	r := p.Requests
	if r.Total == nil {
		if r.Least != nil {
			return fmt.Sprintf("unknown, but at least %s: one for each window", plain.Thousands(*r.Least))
		}
		return "unknown"
	}
	about, results := "about", plain.Thousands(*r.Results)+" for results"
	if p.Unfinished != nil {
		about = "at most about"
	}
	if u := p.Undated; u != nil {
		results = fmt.Sprintf("%s for results with a date, %s for those without", plain.Thousands(*r.Results-u.Requests), plain.Thousands(u.Requests))
	}
	feed := ""
	if n := *r.Total - *r.Results - *r.Counts; n > 0 { // of those that may be sent, the expected ones add up
		feed = fmt.Sprintf(", %s to ask what changed", plain.Thousands(n))
	}
	return fmt.Sprintf("%s %s: %s%s, %s for counts; this plan itself sent %s",
		about, plain.Thousands(*r.Total), results, feed, plain.Thousands(*r.Counts), plain.Plural(r.Planned, "count request"))
}

func plannedChangesText(c *pipelines.PlannedChanges) string {
	if c.Method == load.MethodChanges {
		return fmt.Sprintf("the newest one seen so far is of %s, by the service's clock; the run also reads what changed since, which this plan cannot know", c.KnownTo)
	}
	return "the days before the watermark (lookback) are read again: " + c.Reason
}

func budgetRows(b pipelines.Budget) [][]string {
	minute, day := "not known, as the definition sets no limit per minute", "the definition sets no limit per day"
	if b.PerMinute > 0 {
		minute = "unknown"
		switch {
		case b.Minutes != nil && *b.Minutes <= 1:
			minute = "under a minute"
		case b.Minutes != nil:
			minute = "about " + plain.Plural(int64(math.Round(*b.Minutes)), "minute")
		}
		minute += fmt.Sprintf(", at %s requests a minute", plain.Thousands(b.PerMinute))
	}
	if b.PerDay > 0 {
		percent, more := "an unknown share", ""
		if b.DayShare != nil {
			percent = fmt.Sprintf("%.1f %%", 100**b.DayShare)
			if *b.DayShare > 1 {
				more = ": the run needs several days"
			}
		}
		day = fmt.Sprintf("%s of %s requests a day%s", percent, plain.Thousands(b.PerDay), more)
	}
	return [][]string{{"time", minute}, {"quota", day}}
}

// shownWindows is how many windows are listed at either end of a long list.
const shownWindows = 5

func windowsText(p *pipelines.FormPlan) string {
	windows := p.Windows
	if len(windows) == 0 {
		return ""
	}
	rows := [][]string{{"FROM", "TO", "RESULTS", "REQUESTS"}}
	uncounted := false
	for i, w := range windows {
		if i == shownWindows && len(windows) > 2*shownWindows+1 {
			rows = append(rows, []string{fmt.Sprintf("... %s more ...", plain.Thousands(len(windows)-2*shownWindows)), "", "", ""})
		}
		if i < shownWindows || i >= len(windows)-shownWindows || len(windows) <= 2*shownWindows+1 {
			rows = append(rows, []string{console.Beginning(w.From), w.To.String(), console.Known(w.Results, "?"), console.Known(w.Requests, "?")})
			uncounted = uncounted || w.Results == nil
		}
	}
	if u := p.Undated; u != nil {
		rows = append(rows, []string{"without a date", "", plain.Thousands(u.Results), plain.Thousands(u.Requests)})
	}
	foot := ""
	switch {
	case uncounted && p.Results == nil:
		foot = "  ?: unknown, because nothing was counted\n"
	case uncounted:
		foot = "  ?: not counted separately, because that costs more requests than it saves\n"
	}
	return "\n" + console.Columns("  ", rows) + foot
}
