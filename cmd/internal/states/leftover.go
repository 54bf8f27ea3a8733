package states

import (
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/maintain"
)

// Leftover is what a dead run left at an output. Bytes and Since are null if nobody knows.
type Leftover struct {
	Kind  string     `json:"kind"`
	Path  string     `json:"path"`
	Name  string     `json:"name,omitempty"`
	Run   string     `json:"run_id,omitempty"`
	Bytes *int64     `json:"bytes"`
	Since *time.Time `json:"since"`
}

// leftoverOf is a leftover as JSON.
func leftoverOf(l load.Leftover) Leftover {
	j := Leftover{Kind: string(l.Kind), Path: l.Path, Name: l.Name, Run: l.Run, Since: wholeOrNull(l.Since)}
	if l.Bytes >= 0 {
		j.Bytes = &l.Bytes
	}
	return j
}

// ModeOf is the mode of a pipeline as a definition names it.
func ModeOf(r *maintain.StateReport) string {
	if r.Incremental {
		return "incremental"
	}
	return "full"
}
