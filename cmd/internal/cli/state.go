package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas/plain"
)

func stateCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show how far runs have come, or let the next run read everything again",
		Long: `State shows what earlier runs of a definition left for the next run, or resets it.
It asks the service only which forms match a definition's patterns, and not with --form.`,
		Example: `  formetl state show feedback.yaml
  formetl state reset feedback.yaml`,
		Args: console.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(stateShowCommand(p), stateResetCommand(p))
	return cmd
}

func stateShowCommand(p *process) *cobra.Command {
	var f console.DefinitionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DEFINITION",
		Short: "Show up to when results were read (watermarks), unfinished runs and the request budget",
		Long: `Show prints for each form and output up to when results were read (the watermark),
the newest change that was seen, what the last run wrote, whether a run is working now
or ended early, and how much of the request budget is used. It changes nothing, and
you can use it while a run is working.`,
		Example: `  formetl state show feedback.yaml
  formetl state show feedback.yaml --form form1
  formetl state show feedback.yaml --json | jq -r '.forms[].outputs[].watermark'`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return stateShow(cmd.Context(), p, args, f, asJSON) },
	}
	f.RegisterForms(cmd.Flags())
	f.RegisterKey(cmd.Flags(), keyForForms)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func stateShow(ctx context.Context, p *process, files []string, f console.DefinitionFlags, asJSON bool) error {
	defs, o, err := p.openOutputs(ctx, &f, files, withoutKey)
	if err != nil {
		return err
	}
	report, failed := upkeep.State(ctx, defs[0], o)
	if failed != nil && len(report.Forms) == 0 {
		return failed
	}
	if err := console.Show(p.stdout, asJSON, stateJSONOf(report), stateText(report)); err != nil {
		return err
	}
	return failed
}

// stateJSON is what state show --json prints. A value that does not apply is null.
type stateJSON struct {
	Pipeline   string          `json:"pipeline"`
	Definition string          `json:"definition"`
	Mode       string          `json:"mode"`
	Timezone   string          `json:"timezone"` // the time zone of watermarks and ranges
	Forms      []formStateJSON `json:"forms"`
	Budget     struct {
		PerMinute    int       `json:"per_minute"` // 0: no budget
		BookedMinute *int      `json:"booked_minute"`
		PerDay       int       `json:"per_day"` // 0: no budget
		BookedDay    *int      `json:"booked_day"`
		Next         time.Time `json:"next_request"` // no request is sent before
	} `json:"budget"`
	// Checkpoints are the results that runs which ended early had read.
	Checkpoints []checkpointJSON `json:"checkpoints"`
}

type formStateJSON struct {
	Form    string            `json:"form"`
	Next    map[string]any    `json:"next"` // null if runs are not incremental, or an output is unknown
	Outputs []outputStateJSON `json:"outputs"`
}

type outputStateJSON struct {
	Path         string        `json:"path"`
	Dataset      bool          `json:"dataset"`
	PerRun       bool          `json:"per_run"` // each run writes to another path
	Watermark    load.WallTime `json:"watermark"`
	WatermarkAge *int64        `json:"watermark_age_seconds"`
	Changes      *load.Changes `json:"changes"` // null if the last run did not find out what had changed
	lastCommitJSON
	UnderWay  *underWayJSON  `json:"under_way"`
	Recorded  *string        `json:"recorded_commit"` // id of the run whose commit the next run finishes
	Leftovers []leftoverJSON `json:"leftovers"`
	// UnlistedParts make the next run fail with exit code 73; it makes DamagedParts again.
	UnlistedParts []string `json:"unlisted_parts"`
	DamagedParts  []string `json:"damaged_parts"`
	Error         string   `json:"error,omitempty"`
}

type lastCommitJSON struct {
	RunID     *string     `json:"run_id"`
	CreatedAt *time.Time  `json:"created_at"`
	Range     *load.Range `json:"range"`
	Rows      *int64      `json:"rows"`
	Rejected  int64       `json:"rejected,omitempty"`
	Parts     *int        `json:"parts"`
}

type underWayJSON struct {
	load.Holder            // without run_id if the lease cannot be read
	Since       *time.Time `json:"since"` // replaces the holder's own Since
}

type checkpointJSON struct {
	Form     string    `json:"form"`
	RunID    string    `json:"run_id"`
	OpenedAt time.Time `json:"opened_at"`
	Windows  int       `json:"windows"`
	Rows     int64     `json:"rows"`
	Bytes    int64     `json:"bytes"`
}

// stateJSONOf returns the state of a pipeline in the shape of state show --json.
func stateJSONOf(r *upkeep.StateReport) stateJSON {
	s := stateJSON{
		Pipeline: r.Definition.Name, Definition: r.Definition.File, Mode: modeOf(r), Timezone: r.Definition.Source.Zone.String(),
		Forms: []formStateJSON{}, Checkpoints: []checkpointJSON{},
	}
	s.Budget.PerMinute, s.Budget.PerDay, s.Budget.Next = r.Budget.PerMinute, r.Budget.PerDay, whole(r.Budget.Next)
	if r.Budget.PerMinute > 0 {
		s.Budget.BookedMinute = &r.Budget.Minute
	}
	if r.Budget.PerDay > 0 {
		s.Budget.BookedDay = &r.Budget.Day
	}
	for _, f := range r.Forms {
		form := formStateJSON{Form: f.Form, Outputs: []outputStateJSON{}}
		if f.Next != nil {
			form.Next = map[string]any{"from": *f.Next} // null means from the first result
		}
		for _, out := range f.Outputs {
			form.Outputs = append(form.Outputs, outputOf(r, out))
		}
		s.Forms = append(s.Forms, form)
	}
	for _, c := range r.Checkpoints {
		s.Checkpoints = append(s.Checkpoints, checkpointJSON{
			Form: c.Form, RunID: c.RunID, OpenedAt: whole(c.OpenedAt), Windows: c.Windows, Rows: c.Rows, Bytes: c.Bytes,
		})
	}
	return s
}

func outputOf(r *upkeep.StateReport, out *upkeep.OutputState) outputStateJSON {
	j := outputStateJSON{
		Path: out.Path, Dataset: out.Dataset, PerRun: out.PerRun, Watermark: out.Watermark(), Leftovers: []leftoverJSON{}, UnlistedParts: []string{}, DamagedParts: []string{},
	}
	if out.Err != nil {
		j.Error = out.Err.Error()
	}
	if w := out.Watermark(); !w.IsZero() {
		j.WatermarkAge = new(int64(r.Now.Sub(console.FirstInstant(w, r.Definition.Source.Zone)) / time.Second))
	}
	if m := out.Manifest; m != nil {
		j.lastCommitJSON = lastCommitJSON{&m.RunID, &m.CreatedAt, &m.Range, &m.Rows, m.Rejected, new(len(m.Parts))}
		j.Changes = m.Changes
	}
	if h := out.Holder; h != nil {
		j.UnderWay = &underWayJSON{*h, wholeOrNull(h.Since)}
	}
	if out.Pending != "" {
		j.Recorded = &out.Pending
	}
	for _, o := range out.Inventory.Unlisted {
		j.UnlistedParts = append(j.UnlistedParts, o.Name)
	}
	for _, p := range out.Inventory.Damaged {
		j.DamagedParts = append(j.DamagedParts, p.Path)
	}
	for _, l := range out.Leftovers {
		j.Leftovers = append(j.Leftovers, leftoverOf(l))
	}
	return j
}

// whole returns a time in UTC, cut to whole seconds.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// wholeOrNull returns a time as whole does, and nil for the zero time.
func wholeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(whole(t))
}

// leftoverJSON is what a dead run left at an output. Bytes and Since are null if they are unknown.
type leftoverJSON struct {
	Kind  string     `json:"kind"`
	Path  string     `json:"path"`
	Name  string     `json:"name,omitempty"`
	Run   string     `json:"run_id,omitempty"`
	Bytes *int64     `json:"bytes"`
	Since *time.Time `json:"since"`
}

// leftoverOf returns a leftover in the shape of state show --json.
func leftoverOf(l load.Leftover) leftoverJSON {
	j := leftoverJSON{Kind: string(l.Kind), Path: l.Path, Name: l.Name, Run: l.Run, Since: wholeOrNull(l.Since)}
	if l.Bytes >= 0 {
		j.Bytes = &l.Bytes
	}
	return j
}

// modeOf returns the mode of a pipeline in the words of a definition.
func modeOf(r *upkeep.StateReport) string {
	if r.Definition.Extract.Incremental {
		return "incremental"
	}
	return "full"
}

func stateText(r *upkeep.StateReport) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "pipeline %s, mode %s, times in %s\n", plain.Line(r.Definition.Name), modeOf(r), r.Definition.Source.Zone)
	asks := r.Definition.Extract.Changes != definition.ChangesLookback && reading.Form{Def: r.Definition}.Uncounted() == ""
	for _, form := range r.Forms {
		fmt.Fprintf(w, "\nform %s\n", plain.Line(form.Form))
		if form.Next != nil {
			next := "begins at " + console.Beginning(*form.Next)
			if asks && !slices.ContainsFunc(form.Outputs, func(o *upkeep.OutputState) bool {
				return o.Manifest == nil || o.Manifest.Changes == nil || o.Manifest.Changes.KnownTo.IsZero() || o.Manifest.Changes.Witness == ""
			}) { // it is known of every output up to when changes are known
				next = "begins at the watermark, and reads what changed before it; only if the service cannot list that, it " + next
			}
			fmt.Fprintf(w, "  the next run %s\n", next)
		}
		for _, out := range form.Outputs {
			fmt.Fprintf(w, "  %s\n%s", plain.Line(out.Path), console.Columns("    ", outputRows(r, out)))
		}
	}
	if rows := bookedRows(r); len(rows) > 0 {
		fmt.Fprintf(w, "\nbudget\n%s", console.Columns("  ", rows))
	}
	if len(r.Checkpoints) > 0 {
		rows := console.Rows(nil, r.Checkpoints, func(s checkpoint.Unfinished) []string {
			return []string{"form " + s.Form, "run " + s.RunID, plain.Plural(s.Windows, "window"), plain.Plural(s.Rows, "result"), console.Size(s.Bytes)}
		})
		fmt.Fprintf(w, "\ncheckpoints of runs that ended early, with what the next run need not read again\n%s", console.Columns("  ", rows))
	}
	return w.String()
}

func outputRows(r *upkeep.StateReport, out *upkeep.OutputState) [][]string {
	switch {
	case out.Err != nil:
		return [][]string{{"unknown", "see the error message"}}
	case out.PerRun:
		return [][]string{{"unknown", "each run writes to another path, so no run continues an earlier one"}}
	}
	var rows [][]string
	if out.Dataset {
		watermark := "none"
		if w := out.Watermark(); !w.IsZero() {
			watermark = w.String() + ", " + console.Ago(r.Now.Sub(console.FirstInstant(w, r.Definition.Source.Zone)))
		}
		rows = append(rows, []string{"watermark", watermark})
		rows = append(rows, changesRows(out)...)
	}
	if m := out.Manifest; m != nil {
		rowsText := plain.Thousands(m.Rows)
		if out.Dataset {
			rowsText += " in " + plain.Plural(len(m.Parts), "part") + ", " + console.Covered(m)
		}
		rows = append(rows,
			[]string{"last run", fmt.Sprintf("%s, %s", m.RunID, console.Since(r.Now, m.CreatedAt))},
			[]string{"range", console.Range(m.Range)},
			[]string{"rows", rowsText},
		)
	} else {
		rows = append(rows, []string{"last run", "none"})
	}
	return append(rows, underWayRows(r, out)...)
}

// changesRows say up to what time the last run knew what had changed, and why not up to its end.
func changesRows(out *upkeep.OutputState) [][]string {
	if out.Manifest == nil || out.Manifest.Changes == nil {
		return nil
	}
	c := out.Manifest.Changes
	known := "not known"
	if !c.KnownTo.IsZero() {
		known = "the newest one seen is of " + c.KnownTo.String() + ", by the service's clock"
	}
	if c.Method == load.MethodLookback {
		known += "; the days before the watermark (lookback) were read again"
	}
	if c.Reason != "" {
		known += ": " + plain.Line(c.Reason)
	}
	return [][]string{{"changes", known}}
}

// underWayRows tell what is not committed at an output: a run that is working, a recorded
// commit, and the staged files of dead runs.
func underWayRows(r *upkeep.StateReport, out *upkeep.OutputState) [][]string {
	var rows [][]string
	if h := out.Holder; h != nil {
		text := "a run is working"
		if h.RunID != "" {
			text = fmt.Sprintf("run %s of pipeline %s, process %d on %s, since %s", h.RunID, h.Pipeline, h.PID, h.Host, console.Since(r.Now, h.Since))
		}
		rows = append(rows, []string{"under way", text})
	}
	if out.Pending != "" {
		rows = append(rows, []string{"commit", fmt.Sprintf("run %s ended while it put its files in place; the next run finishes that", out.Pending)})
	}
	if n := len(out.Inventory.Unlisted); n > 0 {
		text := plain.Plural(n, "part") + " not listed in the manifest, so the next run will end with 73; remove with `" + r.Definition.Command("clean", "--unlisted") + "`"
		if out.Manifest == nil {
			text = plain.Plural(n, "part") + " but no manifest, so the next run will end with 73; put _manifest.json back, or read everything again with `" + r.Definition.Command("run", "--full") + "`, without results that the service has deleted"
		}
		rows = append(rows, []string{"unlisted", text})
	}
	if n := len(out.Inventory.Damaged); n > 0 {
		rows = append(rows, []string{"damaged", plain.Plural(n, "part") + " missing or with a different size; the next run writes them again"})
	}
	if n := len(out.Leftovers); n > 0 {
		rows = append(rows, []string{"leftovers", fmt.Sprintf("%d of interrupted runs, which no run needs; after the next run, remove those still there with `%s`, which also removes checkpoints", n, r.Definition.Command("clean"))})
	}
	return rows
}

// bookedRows are the lines on the request budget, none without a budget.
func bookedRows(r *upkeep.StateReport) [][]string {
	b := r.Budget
	var rows [][]string
	if b.PerMinute > 0 {
		rows = append(rows, []string{"minute", booked(b.Minute, b.PerMinute) + " in the last minute"})
	}
	if b.PerDay > 0 {
		rows = append(rows, []string{"day", booked(b.Day, b.PerDay) + " in the last 24 hours"})
	}
	next := "now"
	if b.Next.After(r.Now) {
		next = "at " + console.Since(r.Now, transport.RoundUp(b.Next))
	}
	if len(rows) > 0 {
		rows = append(rows, []string{"next", "the next request can be sent " + next})
	}
	return rows
}

func booked(n, limit int) string {
	return fmt.Sprintf("%s of %s requests used", plain.Thousands(n), plain.Thousands(limit))
}

type resetFlags struct {
	console.DefinitionFlags
	watermark string
	yes       bool
}

func stateResetCommand(p *process) *cobra.Command {
	var f resetFlags
	cmd := &cobra.Command{
		Use:   "reset DEFINITION",
		Short: "Let the next run read everything again, like the first: forget watermarks and checkpoints; outputs stay until it replaces them",
		Long: `Reset removes a definition's watermarks: the next incremental run then reads everything
again, and replaces what is there. With --watermark it sets them back to a time instead.
It also drops what unfinished runs had read (checkpoints). If a run ended while it put
its files in place, reset finishes that. It removes no data of outputs. It asks before
it does anything, unless you give --yes.

If a run is writing to a dataset, that one stays as it is, the others are reset, and reset
ends with 75: run it again later.`,
		Example: `  formetl state reset feedback.yaml
  formetl state reset feedback.yaml --watermark 2026-01-01 --yes
  formetl state reset feedback.yaml --form form1 --yes`,
		Args: console.OneDefinition,
		RunE: func(cmd *cobra.Command, args []string) error { return stateReset(cmd.Context(), p, args, f) },
	}
	set := cmd.Flags()
	f.RegisterForms(set)
	f.RegisterKey(set, keyForForms)
	set.StringVar(&f.watermark, "watermark", "", "set watermarks back to this date or date-time of the account's zone, instead of removing them")
	set.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

const nothingChanged = "nothing was changed"

func stateReset(ctx context.Context, p *process, files []string, f resetFlags) error {
	var to time.Time
	var err error
	if f.watermark != "" {
		if to, err = definition.ParseWallTime(f.watermark); err != nil {
			return fmt.Errorf("--watermark: %w", err)
		}
	}
	if !f.yes { // asked before any reading, so that an unattended job fails at once
		if err := p.attended("set the watermarks back and drop what unfinished runs had read (the next run reads that again; no data is removed)", nothingChanged); err != nil {
			return err
		}
	}
	defs, o, err := p.openOutputs(ctx, &f.DefinitionFlags, files, withoutKey)
	if err != nil {
		return err
	}
	if !f.yes {
		from := "the beginning"
		if !to.IsZero() {
			from = load.Wall(to).String()
		}
		of := "pipeline " + defs[0].Name
		if len(f.Forms) > 0 {
			of = strings.Join(f.Forms, ", ") + " of " + of
		}
		question := fmt.Sprintf("Set the watermarks of %s back to %s, and drop what unfinished runs had read? No data is removed. [y/N] ", plain.Line(of), from)
		if agreed, err := p.confirm(ctx, question, "set the watermarks back", nothingChanged); err != nil || !agreed {
			return err
		}
	}
	report, failed := upkeep.ResetState(ctx, defs[0], o, to)
	if err := showReset(p, report, failed != nil); err != nil {
		return err
	}
	return failed
}

// showReset prints what state reset did, and a summary on standard error.
func showReset(p *process, r *upkeep.ResetReport, failed bool) error {
	var rows [][]string
	marks, commits, moved := 0, 0, "removed, so the next run reads everything again and replaces the rows"
	for _, out := range r.Outputs {
		if c := out.Recovery; c.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, runCell(c.RunID), recoveryWord(c, false)})
		}
		if out.Recovery.Finished {
			commits++
		}
		if !out.Before.Equal(out.After.Time) {
			marks++
			to := "none"
			if !out.After.IsZero() {
				to, moved = out.After.String(), "set back, so the next run reads again from there and replaces the rows"
			}
			rows = append(rows, []string{"watermark", out.Path, "was " + out.Before.String(), "now " + to})
		}
	}
	for _, s := range r.Checkpoints {
		rows = append(rows, []string{"checkpoint", "form " + s.Form, runCell(s.RunID), plain.Plural(s.Windows, "window") + " removed"})
	}
	if err := console.Table(p.stdout, rows...); err != nil || failed && len(rows) == 0 {
		return err
	}
	var told console.Counts
	told.Add(commits, "interrupted write", "finished")
	told.Add(marks, "watermark", moved)
	told.Add(len(r.Checkpoints), "checkpoint", "removed")
	p.log.Tell(slog.LevelInfo, told.Or("nothing to reset"), slog.Int("watermarks", marks),
		slog.Int("checkpoints", len(r.Checkpoints)), slog.Int("finished_commits", commits))
	return nil
}
