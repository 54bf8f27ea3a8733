package pipelines

import (
	"context"
	"errors"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Unfinished is a run that ended early and that the planned one goes on with:
// it asks for less than is planned.
type Unfinished struct {
	RunID   string `json:"run_id"`
	Windows int    `json:"windows"` // that are in the spool
	Parts   int    `json:"parts"`   // that are prepared, of all datasets
}

// unfinished tells what an earlier run left to go on with, nil if there is
// nothing. Whether it fits the definition is for the run to see.
func (f *formRun) unfinished(ctx context.Context) (*Unfinished, error) {
	if f.full {
		return nil, nil
	}
	u := &Unfinished{}
	for _, s := range ofForms(leftSpools(f.def), []string{f.form}) {
		u.RunID, u.Windows = s.RunID, s.Windows
	}
	for _, out := range f.def.Outputs {
		if !out.Dataset() || f.def.HasFiles() {
			continue
		}
		expanded, err := definition.ExpandPath(out.Path, f.def.PathValues(f.form, f.o.RunID))
		if err != nil {
			return nil, err
		}
		dest, err := f.o.Tables.Open(ctx, expanded, out)
		if err != nil {
			return nil, err
		}
		found, err := load.Look(ctx, dest, "")
		if errors.Is(err, load.ErrNoSweep) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if j := found.Journal; j != nil && found.Holder == nil {
			u.RunID = j.RunID
			u.Parts += found.Records
		}
	}
	if u.RunID == "" {
		return nil, nil
	}
	return u, nil
}
