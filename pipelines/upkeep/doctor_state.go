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
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas/plain"
)

// stateFolder tests the rights that runs need at the state, the folder or address of budgets and
// checkpoints. The probe object lies where checkpoints lie.
func (e *examination) stateFolder(ctx context.Context) {
	c := Check{Name: "state", Of: e.def.State, State: OK, Detail: "budgets and checkpoints can be kept there"}
	if !isLocal(e.def.State) {
		c.Detail += ", for all hosts that use it"
	}
	e.makes(e.def.State)
	state, err := pipelines.OpenState(ctx, e.def, e.o)
	p := &prober{dest: state.Destination, name: "checkpoint/probe-" + rand.Text(), run: e.o.RunID}
	checks := p.all(ctx, output.Location{Root: e.def.State}, err)
	if at := slices.IndexFunc(checks, func(is Check) bool { return is.State == Failed }); at >= 0 {
		c = failed(c.Name, c.Of, checks[at].Err, checks[at].Cure)
		c.Detail = "a run cannot keep budgets and checkpoints there: " + checks[at].Detail
	}
	e.add(c)
}

// makes notes the folders that a probe object below root will make, so that removeFolders can
// remove them afterwards.
func (e *examination) makes(root string) {
	if isLocal(root) {
		e.made = append(e.made, absent(root)...)
	}
}

// absent returns folder and those above it that do not exist yet, the innermost first.
func absent(folder string) (made []string) {
	for {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return made
		}
		made = append(made, folder)
		folder = filepath.Dir(folder)
	}
}

// removeFolders removes the folders that probe objects made, the innermost first. Outputs may share
// a folder, so this is done after all tests. A folder that holds something by now stays.
func (e *examination) removeFolders() {
	slices.SortFunc(e.made, func(a, b string) int { return len(b) - len(a) })
	for _, folder := range e.made {
		err := os.Remove(folder)
		if entries, _ := os.ReadDir(folder); err == nil || errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
			continue
		}
		c := failed(removes, "", err, "find out what forbids removing there, because runs remove files too; the empty folder may stay")
		c.Detail = "doctor made this folder for its test and could not remove it: " + c.Detail
		e.add(c)
		return
	}
}

// checkpointCheck tells which checkpoints runs that ended early left in the state. A checkpoint is
// what a run has read until it commits.
func checkpointCheck(state *StateReport) Check {
	c := Check{Name: "checkpoint", State: OK, Detail: "a run that ends early leaves what it has read in the state, and the next run goes on from there"}
	for _, early := range state.Checkpoints {
		c.Detail += fmt.Sprintf("; run %s ended early, and left %s of form %s", early.RunID, plain.Plural(early.Rows, "result"), early.Form)
	}
	if slices.ContainsFunc(state.Forms, func(f *FormState) bool {
		return slices.ContainsFunc(f.Outputs, func(o *OutputState) bool { return o.Holder != nil })
	}) {
		c.Detail += "; a run is under way"
	}
	return c
}

// leftovers adds a check for each output that tells what earlier runs left there: a lease, a commit
// that is not finished, staged files, parts that no manifest lists; and one that failed for a form
// with an output that a run would leave as it is, because the definition has changed since.
func (e *examination) leftovers(ctx context.Context, usable *definition.Definition, state *StateReport) {
	for _, f := range state.Forms {
		for _, at := range f.Outputs {
			if !at.PerRun {
				e.add(e.leftoversAt(at))
			}
		}
		def, err := usable.For(f.Form)
		if err != nil {
			continue // a schema that is wrong has a check of its own
		}
		_, err = output.Look(ctx, e.o.Job(def, f.Form))
		if changed, ok := errors.AsType[*definition.Fault](err); ok && changed.Code == 78 {
			e.add(failed("definition", f.Form, changed, changed.Cure))
		}
	}
}

// leftoversAt returns a check that tells what earlier runs left at one output. If there are several
// things, it tells of the one that hinders a run most.
func (e *examination) leftoversAt(at *OutputState) Check {
	clean, replace := "`"+e.def.Command("clean")+"`", "`"+e.def.Command("run", "--full")+"`"
	found := func(state CheckState, cure, format string, args ...any) Check {
		return Check{Name: "runs", Of: at.Path, State: state, Cure: cure, Detail: fmt.Sprintf(format, args...)}
	}
	_, damaged := errors.AsType[*load.ManifestError](at.Err)
	_, unreadable := errors.AsType[*load.RecordError](at.Err)
	unlisted, there := errors.AsType[*definition.Fault](output.Unlisted(e.def, at.Path, at.Manifest, at.Inventory))
	switch {
	case damaged:
		return failed("runs", at.Path, at.Err, "restore the manifest, or replace the output with "+replace)
	case unreadable:
		return failed("runs", at.Path, at.Err, "replace the output with "+replace)
	case at.Err != nil:
		return found(NotChecked, "", "what earlier runs left there cannot be read: %v", at.Err)
	case at.Holder != nil:
		held := &load.HeldError{Path: at.Path, Holder: *at.Holder}
		c := found(Failed, "wait until that run has ended, or stop it",
			"run %s of pipeline %s (process %d on %s) is writing there", held.RunID, held.Pipeline, held.PID, held.Host)
		c.Err = held
		return c
	case there:
		return failed("runs", at.Path, unlisted, unlisted.Cure)
	case at.Pending != "":
		return found(Warning, "the next run finishes it, or "+clean+" does",
			"run %s was stopped while it put its results in place, and programs may miss some of them until that is finished", at.Pending)
	case len(at.Inventory.Damaged) > 0:
		return found(Warning, "`"+e.def.Command("verify")+"` says which command writes damaged and missing parts again",
			"%s damaged or missing: %s", plain.Plural(len(at.Inventory.Damaged), "part"), at.Inventory.Damaged[0])
	case len(at.Leftovers) > 0:
		return found(Warning, "after the next run, remove those still there with "+clean+"; before it, that also removes what the run would resume from", "earlier runs left %s that no run needs", plain.Plural(len(at.Leftovers), "file"))
	case at.Foreign:
		return found(Warning, "if you need this file, move it away, or give the output another path", "the next run replaces a file that formetl may not have written, because there is no manifest of formetl beside it")
	case at.Manifest != nil:
		return found(OK, "", "run %s wrote %s there, and no run is under way", at.Manifest.RunID, plain.Plural(at.Manifest.Rows, "row"))
	}
	return found(OK, "", "no run is writing there, and none left anything there")
}
