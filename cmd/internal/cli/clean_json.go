package cli

import (
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// cleanJSON is what clean --json prints. In a dry run everything that it
// tells is still to be done.
type cleanJSON struct {
	DryRun      bool          `json:"dry_run"`
	Outputs     []cleanedJSON `json:"outputs"`
	Checkpoints int           `json:"checkpoints"` // of dead runs in the state folders
}

type cleanedJSON struct {
	Pipeline  string         `json:"pipeline"`
	Path      string         `json:"path"`
	Removed   []leftoverJSON `json:"removed"`
	Kept      []leftoverJSON `json:"kept"`
	Others    int            `json:"others"` // uploads whose owner cannot be told
	Finished  *string        `json:"finished_commit"`
	Withdrawn *string        `json:"withdrawn_commit,omitempty"` // could not be finished any more
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

// add takes a definition's report in.
func (c *cleanJSON) add(r *pipelines.CleanReport) {
	c.Checkpoints += r.Checkpoints
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
		if out.Err != nil {
			j.Error = out.Err.Error()
		}
		c.Outputs = append(c.Outputs, j)
	}
}

func leftoverOf(l load.Leftover, why string) leftoverJSON {
	j := leftoverJSON{Kind: string(l.Kind), Path: l.Path, Name: l.Name, Run: l.Run, Why: why}
	if l.Bytes >= 0 {
		j.Bytes = &l.Bytes
	}
	if !l.Since.IsZero() {
		since := l.Since.UTC().Truncate(time.Second)
		j.Since = &since
	}
	return j
}

// cleanSum counts what clean did.
type cleanSum struct {
	removed, kept, others, finished, withdrawn int
	bytes                                      int64
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
	}
	return s
}
