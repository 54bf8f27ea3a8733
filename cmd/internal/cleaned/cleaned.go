// Package cleaned is what `formetl clean` prints.
//
// Begin reading at Result.
package cleaned

import (
	"log/slog"
	"slices"
	"time"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/telemetry"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/maintain"
)

// Result sums up what was found at the outputs of definitions. In a dry run it tells what a
// run without --dry-run would do.
type Result struct {
	dryRun                             bool
	checkpoints                        int      // of dead runs in the state folders
	removed, kept, finished, withdrawn int      // of all outputs
	bytes                              int64    // of what was removed
	reasons                            []string // why leftovers were kept
}

// New returns a Result of nothing.
func New(dryRun bool) *Result { return &Result{dryRun: dryRun} }

// Add adds the report of a definition, and gives its rows for people.
func (r *Result) Add(report *maintain.CleanReport) (rows [][]string) {
	removed := "removed"
	if r.dryRun {
		removed = "would remove"
	}
	r.checkpoints += report.Checkpoints
	for _, out := range report.Outputs {
		if commit := out.Recovery; commit.RunID != "" {
			rows = append(rows, []string{"recorded commit", out.Path, "-", RunCell(commit.RunID), "-", RecoveryWord(commit, r.dryRun)})
			if commit.Finished || r.dryRun {
				r.finished++
			} else {
				r.withdrawn++
			}
		}
		for _, l := range out.Removed {
			rows = append(rows, append(leftoverCells(l), removed))
			r.bytes += max(l.Bytes, 0)
		}
		for _, k := range out.Kept {
			rows = append(rows, append(leftoverCells(k.Leftover), "kept: "+k.Why))
			r.reasons = append(r.reasons, k.Why)
		}
		r.removed, r.kept = r.removed+len(out.Removed), r.kept+len(out.Kept)
	}
	return rows
}

// why says why leftovers were kept, if all were kept for one reason.
func (r *Result) why() string {
	reasons := slices.Compact(slices.Sorted(slices.Values(r.reasons)))
	if len(reasons) != 1 {
		return ""
	}
	return ", because " + reasons[0]
}

// Tell sums up on standard error. Where something failed it does not say that
// there is nothing to clean, because not everything was looked at.
func (r *Result) Tell(log *telemetry.Log, failed bool) {
	did := func(verb string) string {
		if r.dryRun {
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
	told.Add(r.checkpoints, "checkpoint", "of dead runs "+did("removed"))
	told.Add(r.kept, "leftover", "kept"+r.why())
	if len(told) == 0 && failed {
		return
	}
	log.Tell(slog.LevelInfo, told.Or("nothing to clean"), slog.Bool("dry_run", r.dryRun), slog.Int("removed", r.removed), slog.Int64("bytes", r.bytes),
		slog.Int("kept", r.kept), slog.Int("finished_commits", r.finished), slog.Int("checkpoints", r.checkpoints))
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
