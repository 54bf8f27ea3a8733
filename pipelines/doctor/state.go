package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/pipelines/output"
)

// stateCheck tests the rights that runs need at the state. The probe lies where checkpoints do.
func stateCheck(ctx context.Context, def *definition.Definition, o account.Options) (c Check) {
	c = Check{Name: "state", Of: def.State, State: OK, Detail: "budgets and checkpoints can be kept there"}
	if isLocal(def.State) {
		made := absent(def.State)
		defer func() { _ = removeEmpty(made) }()
	} else {
		c.Detail += ", for all hosts that use it"
	}
	r := &rights{name: "checkpoint/probe-" + rand.Text(), run: o.RunID}
	state, err := account.OpenState(ctx, def, o)
	if r.dest = state.Destination; err != nil {
		r.unusable(err)
	} else {
		r.test(ctx, output.Location{Root: def.State})
	}
	for _, worst := range []State{Warning, Failed} {
		if at := slices.IndexFunc(r.checks, func(is Check) bool { return is.State == worst }); at >= 0 {
			is := r.checks[at]
			c.State, c.Err, c.Cure, c.Detail = is.State, is.Err, is.Cure, is.Name+": "+is.Detail
		}
	}
	return c
}

// absent returns the folders that would have to be made for a folder, the innermost first.
func absent(folder string) (made []string) {
	for {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return made
		}
		made = append(made, folder)
		folder = filepath.Dir(folder)
	}
}

// removeEmpty removes folders that were made, the innermost first. One that is used by now stays.
func removeEmpty(made []string) error {
	for _, folder := range made {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if entries, _ := os.ReadDir(folder); len(entries) > 0 {
				return nil
			}
			return err
		}
	}
	return nil
}

// checkpointCheck tells what lies where runs keep what they read until it is committed.
func checkpointCheck(state *maintain.StateReport) Check {
	c := Check{Name: "checkpoint", State: OK, Detail: "runs keep what they read in the state"}
	for _, left := range state.Checkpoints {
		c.Detail += fmt.Sprintf("; run %s, which ended early, had read %d results of form %s", left.RunID, left.Rows, left.Form)
	}
	if slices.ContainsFunc(state.Forms, underWay) {
		c.Detail += "; a run is under way"
	}
	return c
}

// underWay tells whether a run writes an output of the form now.
func underWay(f *maintain.FormState) bool {
	return slices.ContainsFunc(f.Outputs, func(o *maintain.OutputState) bool { return o.Holder != nil })
}
