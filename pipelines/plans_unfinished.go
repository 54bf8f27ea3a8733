package pipelines

import (
	"context"
)

// Unfinished is a run that ended early and whose checkpoint the planned one
// resumes from: it asks for less than is planned.
type Unfinished struct {
	RunID   string `json:"run_id"`
	Windows int    `json:"windows"` // that were read whole
	Results int64  `json:"results"` // that were read, also of windows that were not read whole
}

// unfinished tells what an earlier run left in a checkpoint, nil if there is
// nothing. Whether it fits the definition is for the run to see.
func (f *formRun) unfinished(ctx context.Context) (u *Unfinished, err error) {
	all, err := checkpointsOf(ctx, f.def, f.o, []string{f.form})
	for _, left := range all {
		if left.Full || !f.full { // a run with --full takes over those of its kind alone
			u = &Unfinished{RunID: left.RunID, Windows: left.Windows, Results: left.Rows}
		}
	}
	return u, err
}
