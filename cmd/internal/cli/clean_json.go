package cli

import (
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// cleanJSON is what clean --json prints. In a dry run it tells what a run without
// --dry-run would do.
type cleanJSON struct {
	DryRun  bool          `json:"dry_run"`
	Outputs []cleanedJSON `json:"outputs"`
	Spools  int           `json:"spools"` // folders of dead runs in the state folders
}

type cleanedJSON struct {
	Pipeline  string         `json:"pipeline"`
	Path      string         `json:"path"`
	Removed   []leftoverJSON `json:"removed"`
	Kept      []leftoverJSON `json:"kept"`
	Others    int            `json:"others"` // uploads whose owner cannot be told
	Finished  *string        `json:"finished_commit"`
	Withdrawn *string        `json:"withdrawn_commit,omitempty"` // could not be finished any more
	Journal   *journalJSON   `json:"journal"`
	Error     string         `json:"error,omitempty"`
}

type leftoverJSON struct {
	Kind  string     `json:"kind"`
	Path  string     `json:"path"`
	Name  string     `json:"name,omitempty"`
	Run   string     `json:"run_id,omitempty"`
	Bytes *int64     `json:"bytes"`
	Since *time.Time `json:"since"`
	Why   string     `json:"why,omitempty"`
}

type journalJSON struct {
	RunID string `json:"run_id"`
	Parts int    `json:"parts"`
}

// add adds the report of a definition.
func (c *cleanJSON) add(r *pipelines.CleanReport) {
	c.Spools += r.Spools
	for _, out := range r.Outputs {
		j := cleanedJSON{
			Pipeline: r.Pipeline, Path: out.Path, Removed: []leftoverJSON{}, Kept: []leftoverJSON{}, Others: out.Others,
		}
		for _, l := range out.Removed {
			j.Removed = append(j.Removed, leftoverOf(l, ""))
		}
		for _, k := range out.Kept {
			j.Kept = append(j.Kept, leftoverOf(k.Leftover, k.Why))
		}
		switch commit := out.Recovery; {
		case commit.RunID == "":
		case commit.Finished || c.DryRun:
			j.Finished = &commit.RunID
		default:
			j.Withdrawn = &commit.RunID
		}
		if out.Journal != nil {
			j.Journal = &journalJSON{RunID: out.Journal.RunID, Parts: out.Journal.Parts}
		}
		if out.Err != nil {
			j.Error = out.Err.Error()
		}
		c.Outputs = append(c.Outputs, j)
	}
}

// leftoverOf is a leftover as JSON; why says why it was kept.
func leftoverOf(l load.Leftover, why string) leftoverJSON {
	j := leftoverJSON{Kind: string(l.Kind), Path: l.Path, Name: l.Name, Run: l.Run, Why: why}
	if l.Bytes >= 0 {
		j.Bytes = &l.Bytes
	}
	if !l.Since.IsZero() {
		j.Since = new(whole(l.Since))
	}
	return j
}

// cleanSum counts what clean did at all outputs.
type cleanSum struct {
	removed, kept, others, finished, withdrawn, journals int
	bytes                                                int64
}

func (c *cleanJSON) sum() cleanSum {
	var s cleanSum
	for _, out := range c.Outputs {
		s.removed += len(out.Removed)
		s.kept += len(out.Kept)
		s.others += out.Others
		for _, l := range out.Removed {
			if l.Bytes != nil {
				s.bytes += *l.Bytes
			}
		}
		if out.Finished != nil {
			s.finished++
		}
		if out.Withdrawn != nil {
			s.withdrawn++
		}
		if out.Journal != nil {
			s.journals++
		}
	}
	return s
}
