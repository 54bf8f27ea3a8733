// Package cleaned is what `formetl clean` prints, for people and as JSON.
//
// Begin reading at Result.
package cleaned

import (
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/states"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/maintain"
)

// Result is what `clean --json` prints. In a dry run it tells what a run without
// --dry-run would do.
type Result struct {
	DryRun  bool     `json:"dry_run"`
	Outputs []Output `json:"outputs"`
	// Checkpoints counts those of dead runs in the state folders.
	Checkpoints int `json:"checkpoints"`

	removed, kept, others, finished, withdrawn int   // of all outputs
	bytes                                      int64 // of what was removed
}

// New returns a Result without outputs.
func New(dryRun bool) *Result { return &Result{DryRun: dryRun, Outputs: []Output{}} }

// Output is what was found at one output.
type Output struct {
	Pipeline  string            `json:"pipeline"`
	Path      string            `json:"path"`
	Removed   []states.Leftover `json:"removed"`
	Kept      []states.Leftover `json:"kept"`
	Others    int               `json:"others"` // uploads whose owner cannot be told
	Finished  *string           `json:"finished_commit"`
	Withdrawn *string           `json:"withdrawn_commit,omitempty"` // could not be finished any more
	Error     string            `json:"error,omitempty"`
}

// Add adds the report of a definition, and gives its rows for people.
func (r *Result) Add(report *maintain.CleanReport) (rows [][]string) {
	removed := "removed"
	if r.DryRun {
		removed = "would remove"
	}
	r.Checkpoints += report.Checkpoints
	for _, out := range report.Outputs {
		j := Output{
			Pipeline: report.Pipeline, Path: out.Path, Removed: []states.Leftover{}, Kept: []states.Leftover{}, Others: out.Others,
		}
		if commit := out.Recovery; commit.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, "-", RunCell(commit.RunID), "-", RecoveryWord(commit, r.DryRun)})
			if commit.Finished || r.DryRun {
				j.Finished = &commit.RunID
				r.finished++
			} else {
				j.Withdrawn = &commit.RunID
				r.withdrawn++
			}
		}
		for _, l := range out.Removed {
			rows = append(rows, append(leftoverCells(l), removed))
			j.Removed = append(j.Removed, states.LeftoverOf(l, ""))
			r.bytes += max(l.Bytes, 0)
		}
		for _, k := range out.Kept {
			rows = append(rows, append(leftoverCells(k.Leftover), "kept: "+k.Why))
			j.Kept = append(j.Kept, states.LeftoverOf(k.Leftover, k.Why))
		}
		r.removed, r.kept, r.others = r.removed+len(out.Removed), r.kept+len(out.Kept), r.others+out.Others
		if out.Err != nil {
			j.Error = out.Err.Error()
		}
		r.Outputs = append(r.Outputs, j)
	}
	return rows
}

// why says why leftovers were kept, if all were kept for one reason.
func (r *Result) why() string {
	var reasons []string
	for _, out := range r.Outputs {
		for _, k := range out.Kept {
			reasons = append(reasons, k.Why)
		}
	}
	slices.Sort(reasons)
	if reasons = slices.Compact(reasons); len(reasons) != 1 {
		return ""
	}
	return ", because " + reasons[0]
}

// Tell sums up on standard error. Where something failed it does not say that
// there is nothing to clean, because not everything was looked at.
func (r *Result) Tell(log *telemetry.Log, failed bool) {
	did := func(verb string) string {
		if r.DryRun {
			return "would be " + verb
		}
		return verb
	}
	var told show.Counts
	told.Add(r.finished, "commit", did("finished"))
	told.Add(r.withdrawn, "commit", "taken back")
	total := ""
	if r.bytes > 0 {
		total = " (" + show.Size(r.bytes) + ")"
	}
	told.Add(r.removed, "leftover", did("removed")+total)
	told.Add(r.Checkpoints, "checkpoint", "of dead runs "+did("removed"))
	told.Add(r.kept, "leftover", "kept"+r.why())
	told.Add(r.others, "upload", "of others left alone")
	if len(told) == 0 && failed {
		return
	}
	log.Tell(slog.LevelInfo, told.Or("nothing to clean"), slog.Bool("dry_run", r.DryRun), slog.Int("removed", r.removed), slog.Int64("bytes", r.bytes),
		slog.Int("kept", r.kept), slog.Int("finished_commits", r.finished), slog.Int("checkpoints", r.Checkpoints))
}

// RecoveryWord says what became of a commit that a dead run had recorded.
func RecoveryWord(r load.Recovery, dryRun bool) string {
	switch {
	case dryRun:
		return "would finish"
	case r.Finished:
		return "finished"
	}
	return "taken back: it could not be finished"
}

func leftoverCells(l load.Leftover) []string {
	bytes, since := "-", "-"
	if l.Bytes >= 0 {
		bytes = show.Size(l.Bytes)
	}
	if !l.Since.IsZero() {
		since = "since " + l.Since.UTC().Format(time.RFC3339)
	}
	return []string{string(l.Kind), l.Path, bytes, RunCell(l.Run), since}
}

// RunCell names a run in a table, "-" where there is none.
func RunCell(run string) string {
	if run == "" {
		return "-"
	}
	return "run " + run
}
