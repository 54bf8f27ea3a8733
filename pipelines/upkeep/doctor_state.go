package upkeep

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
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
	state, err := account.OpenState(ctx, def, o)
	r := &rights{dest: state.Destination, name: "checkpoint/probe-" + rand.Text(), run: o.RunID}
	checks := testRights(ctx, r, output.Location{Root: def.State}, err)
	for _, worst := range []CheckState{Warning, Failed} {
		if at := slices.IndexFunc(checks, func(is Check) bool { return is.State == worst }); at >= 0 {
			is := checks[at]
			c.State, c.Err, c.Cure, c.Detail = is.State, is.Err, is.Cure, "a run cannot keep budgets and checkpoints there: "+is.Detail
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
func checkpointCheck(state *StateReport) Check {
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
func underWay(f *FormState) bool {
	return slices.ContainsFunc(f.Outputs, func(o *OutputState) bool { return o.Holder != nil })
}

// leftChecks tell what earlier runs left at the outputs: a lease, a commit that is not
// finished, staged files, parts that no manifest lists. failed is the error of the
// look, of which each output tells its own.
func leftChecks(def *definition.Definition, state *StateReport, failed error) (checks []Check) {
	for _, f := range state.Forms {
		for _, at := range f.Outputs {
			if !at.PerRun {
				checks = append(checks, leftCheck(def, at))
			}
		}
	}
	if len(state.Forms) == 0 && failed != nil {
		checks = append(checks, Check{Name: "runs", State: NotChecked, Detail: failed.Error()})
	}
	return checks
}

// leftCheck tells what earlier runs left at one output. What hinders a run comes first.
func leftCheck(def *definition.Definition, at *OutputState) Check {
	c := Check{Name: "runs", Of: at.Path, State: OK, Detail: "no run is under way, and none left anything"}
	clean, replace, unlist := def.Command("clean"), def.Command("run", "--full"), def.Command("clean", "--unlisted")
	_, damaged := errors.AsType[*load.ManifestError](at.Err)
	switch unlisted := output.Unlisted(def, at.Path, at.Inventory); {
	case damaged:
		c.State, c.Err, c.Detail = Failed, at.Err, at.Err.Error()
		c.Cure = "restore the manifest, or replace the output by " + replace
	case at.Err != nil:
		c.State, c.Detail = NotChecked, "what earlier runs left cannot be seen: "+at.Err.Error()
	case at.Holder != nil:
		held := &load.HeldError{Path: at.Path, Holder: *at.Holder}
		c.State, c.Err = Failed, held
		c.Detail = fmt.Sprintf("run %s of pipeline %s (process %d on %s) is writing there", held.RunID, held.Pipeline, held.PID, held.Host)
		c.Cure = "wait until that run has ended, or stop it; its lease ends with its process"
	case unlisted != nil:
		c.State, c.Err, c.Detail = Failed, unlisted, fmt.Sprintf("parts lie there that no manifest lists, and a run writes nothing beside them: %s", at.Inventory.Unlisted[0].Name)
		c.Cure = "remove them by " + unlist + ", or replace everything by " + replace
	case at.Pending != "":
		c.State, c.Detail = Warning, fmt.Sprintf("the commit of run %s was interrupted, and readers may miss what it wrote until it is finished", at.Pending)
		c.Cure = "the next run finishes it first; so does " + clean
	case len(at.Inventory.Damaged) > 0:
		c.State, c.Detail = Warning, fmt.Sprintf("%d parts are damaged or missing: %s", len(at.Inventory.Damaged), at.Inventory.Damaged[0])
		c.Cure = def.Command("verify") + " names the command that makes them again"
	case len(at.Leftovers) > 0:
		c.State, c.Detail = Warning, fmt.Sprintf("runs that ended early left %d staged files or uploads", len(at.Leftovers))
		c.Cure = "remove them by " + clean
	case at.Manifest != nil:
		c.Detail = fmt.Sprintf("run %s wrote %d rows there, and no run is under way", at.Manifest.RunID, at.Manifest.Rows)
	}
	return c
}
