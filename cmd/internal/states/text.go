package states

import (
	"fmt"
	"io"
	"slices"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/schemas/plain"
)

// Write shows the state as text.
func Write(w io.Writer, r *maintain.StateReport) {
	fmt.Fprintf(w, "pipeline %s, mode %s, times in %s\n", plain.Line(r.Pipeline), ModeOf(r), r.Zone)
	for _, form := range r.Forms {
		fmt.Fprintf(w, "\nform %s\n", plain.Line(form.Form))
		if form.Next != nil {
			fmt.Fprintf(w, "  the next run begins at %s%s\n", show.Beginning(*form.Next), unlessTold(form))
		}
		for _, out := range form.Outputs {
			fmt.Fprintf(w, "  %s\n%s", plain.Line(out.Path), show.Columns("    ", outputRows(r, out)))
		}
	}
	if rows := bookedRows(r); len(rows) > 0 {
		fmt.Fprintf(w, "\nbudget\n%s", show.Columns("  ", rows))
	}
	if len(r.Checkpoints) > 0 {
		rows := show.Rows(nil, r.Checkpoints, func(s checkpoint.Left) []string {
			return []string{"form " + s.Form, "run " + s.RunID, show.Plural(s.Windows, "window"), show.Plural(s.Rows, "result"), show.Size(s.Bytes)}
		})
		fmt.Fprintf(w, "\nread by runs that ended early\n%s", show.Columns("  ", rows))
	}
}

// unlessTold limits where the next run of a form begins, if the last one knew what
// had changed.
func unlessTold(form *maintain.FormState) string {
	told := slices.ContainsFunc(form.Outputs, func(o *maintain.OutputState) bool {
		return o.Manifest != nil && o.Manifest.Changes != nil && o.Manifest.Changes.Method == load.MethodChanges
	})
	if !told {
		return ""
	}
	return ", or at the watermark if the service tells what changed"
}

func outputRows(r *maintain.StateReport, out *maintain.OutputState) [][]string {
	switch {
	case out.Err != nil:
		return [][]string{{"unknown", "see the error"}}
	case out.PerRun:
		return [][]string{{"unknown", "another path for each run: no run continues it"}}
	}
	var rows [][]string
	if out.Dataset {
		watermark := "none"
		if w := out.Watermark(); !w.IsZero() {
			watermark = w.String() + ", " + show.Ago(r.Now.Sub(show.FirstInstant(w, r.Zone)))
		}
		rows = append(rows, []string{"watermark", watermark})
		rows = append(rows, changesRows(out)...)
	}
	if m := out.Manifest; m != nil {
		rowsText := show.Thousands(m.Rows)
		if out.Dataset {
			rowsText += " in " + show.Plural(len(m.Parts), "part") + ", " + show.Covered(m)
		}
		rows = append(rows,
			[]string{"last run", fmt.Sprintf("%s, %s", m.RunID, show.Since(r.Now, m.CreatedAt))},
			[]string{"range", show.Range(m.Range)},
			[]string{"rows", rowsText},
		)
	} else {
		rows = append(rows, []string{"last run", "none"})
	}
	return append(rows, underWayRows(r, out)...)
}

// changesRows tell how the last run found what had changed, and what is left of it.
func changesRows(out *maintain.OutputState) [][]string {
	if out.Manifest == nil || out.Manifest.Changes == nil {
		return nil
	}
	c := out.Manifest.Changes
	known := "not known"
	if !c.KnownTo.IsZero() {
		known = "known to " + c.KnownTo.String() + " by the service's clock"
	}
	if c.Method == load.MethodLookback {
		known += "; the lookback was read again"
	}
	if c.Reason != "" {
		known += ": " + plain.Line(c.Reason)
	}
	rows := [][]string{{"changes", known}}
	return rows
}

// underWayRows tell what is not committed: a run that is alive, a recorded
// commit, and what dead runs were staging.
func underWayRows(r *maintain.StateReport, out *maintain.OutputState) [][]string {
	var rows [][]string
	if h := out.Holder; h != nil {
		text := "a run is under way"
		if h.RunID != "" {
			text = fmt.Sprintf("run %s of pipeline %s, process %d on %s, since %s", h.RunID, h.Pipeline, h.PID, h.Host, show.Since(r.Now, h.Since))
		}
		rows = append(rows, []string{"under way", text})
	}
	if out.Pending != "" {
		rows = append(rows, []string{"commit", fmt.Sprintf("of run %s is recorded; the next run finishes it", out.Pending)})
	}
	if n := len(out.Inventory.Unlisted); n > 0 {
		text := show.Plural(n, "part") + " that no manifest lists; the next run ends with 73; `" + r.Definition.Command("clean", "--unlisted") + "` removes them"
		if out.Manifest == nil {
			text = show.Plural(n, "part") + " and no manifest; put it back, or the next run ends with 73; `" + r.Definition.Command("run", "--full") + "` replaces everything"
		}
		rows = append(rows, []string{"unlisted", text})
	}
	if n := len(out.Inventory.Damaged); n > 0 {
		rows = append(rows, []string{"damaged", show.Plural(n, "part") + " missing or of another size; the next run makes them again"})
	}
	if n := len(out.Leftovers); n > 0 {
		rows = append(rows, []string{"leftovers", fmt.Sprintf("%d of dead runs; `%s` removes them", n, r.Definition.Command("clean"))})
	}
	return rows
}

// bookedRows are the lines of the budget, none where there is none.
func bookedRows(r *maintain.StateReport) [][]string {
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
		next = "at " + show.Since(r.Now, b.Next)
	}
	if len(rows) > 0 {
		rows = append(rows, []string{"next", "a request may be sent " + next})
	}
	return rows
}

func booked(n, limit int) string {
	return fmt.Sprintf("%s of %s requests booked", show.Thousands(n), show.Thousands(limit))
}
