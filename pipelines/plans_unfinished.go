package pipelines

import (
	"context"

	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// Unfinished is a run that ended early and whose checkpoint the planned one
// resumes from: it asks for less than is planned.
type Unfinished struct {
	RunID   string `json:"run_id"`
	Windows int    `json:"windows"` // that were read whole
	Results int64  `json:"results"` // that were read, also of windows that were not read whole
}

// unfinished tells what an earlier run left in the state folder, nil if there is
// nothing. Whether it fits the definition is for the run to see.
func (f *formRun) unfinished(ctx context.Context) (u *Unfinished) {
	for _, left := range checkpointsOf(ctx, f.def, []string{f.form}) {
		if left.Full == f.full {
			u = &Unfinished{RunID: left.RunID, Windows: left.Windows, Results: left.Rows}
		}
	}
	return u
}

// checkpointsOf are the checkpoints in the state folder that runs of the
// definition left of forms and that no run holds, oldest first.
func checkpointsOf(ctx context.Context, def *definition.Definition, forms []string) (left []checkpoint.Left) {
	for _, l := range checkpoint.LeftIn(ctx, def.State) {
		for _, form := range forms {
			if l.Is(def.Name, form, def.File) {
				left = append(left, l)
			}
		}
	}
	return left
}
