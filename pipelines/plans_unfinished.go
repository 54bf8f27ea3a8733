package pipelines

import (
	"context"

	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// Unfinished is a run that ended early and whose checkpoint the planned one
// resumes from: it asks for less than is planned.
type Unfinished struct {
	RunID   string `json:"run_id"`
	Windows int    `json:"windows"` // that were read whole
	Results int64  `json:"results"` // that were read, also of windows that were not read whole
	// Requests is how many fewer a run sends at least if it takes over all of them. How many
	// it takes over is known when the run has its plan.
	Requests int64 `json:"requests"`
}

// unfinishedOf tells what an earlier run left in a checkpoint, nil if there is
// nothing. Whether it fits the definition is for the run to see.
func unfinishedOf(ctx context.Context, def *definition.Definition, o account.Options, form reading.Form) (u *Unfinished, err error) {
	all, err := account.Checkpoints(ctx, def, o, []string{form.Name})
	for _, c := range all {
		if c.Full || !o.Full { // a run with --full takes over those of its kind alone
			u = &Unfinished{RunID: c.RunID, Windows: c.Windows, Results: c.Rows, Requests: c.Rows / form.PageSize()}
		}
	}
	return u, err
}
