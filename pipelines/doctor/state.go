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

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/maintain"
	"github.com/formetl/formetl/pipelines/output"
)

// stateCheck writes to the state as a run does, and looks who owns what lies in a folder.
func stateCheck(ctx context.Context, def *definition.Definition, o account.Options) Check {
	if !isLocal(def.State) {
		return remoteState(ctx, def, o)
	}
	state := def.State
	c := Check{Name: "state", Of: state, State: OK, Detail: "budgets and checkpoints can be kept there"}
	err := tryFolder(state)
	foreign := 0
	if err == nil {
		foreign, err = foreigners(state)
	}
	if err != nil {
		c.State, c.Err, c.Detail = Failed, &checkpoint.StateError{Place: state, Err: err}, fmt.Sprintf("a run cannot keep budgets and checkpoints there: %v", err)
		c.Cure = "move away what is in its way, let this user write there, or name another folder with state: or --state"
		return c
	}
	info, err := os.Stat(state)
	switch {
	case err != nil:
		c.Detail = "it does not exist yet, and can be made"
	case foreign > 0:
		c.State = Warning
		c.Detail = fmt.Sprintf("%d files or folders in it are not of user %d, who runs this: runs of several users shut each other out of checkpoints", foreign, os.Geteuid())
		c.Cure = fmt.Sprintf("run formetl always as the same user, or give it all to this one: chown -R %d %s", os.Geteuid(), state)
	case info.Mode().Perm()&0o002 != 0:
		c.State, c.Detail = Warning, "everybody may write there, and so forge what the next run takes over"
		c.Cure = "chmod o-w " + state
	}
	return c
}

// remoteState tests the rights that runs need at a state in a bucket.
func remoteState(ctx context.Context, def *definition.Definition, o account.Options) Check {
	r := &rights{name: load.ProbePrefix + rand.Text(), run: o.RunID}
	state, err := account.OpenState(ctx, def, o)
	if r.dest = state.Destination; err != nil {
		r.unusable(err)
	} else {
		r.test(ctx, output.Location{Root: def.State})
	}
	c := Check{Name: "state", Of: def.State, State: OK, Detail: "budgets and checkpoints can be kept there, for all hosts that use it"}
	for _, worst := range []State{Warning, Failed} {
		if at := slices.IndexFunc(r.checks, func(is Check) bool { return is.State == worst }); at >= 0 {
			is := r.checks[at]
			c.State, c.Err, c.Cure, c.Detail = is.State, is.Err, is.Cure, is.Name+": "+is.Detail
		}
	}
	return c
}

// tryFolder writes and reads a file where checkpoints lie, and removes all that it made.
func tryFolder(state string) (err error) {
	folder := filepath.Join(state, "checkpoint", "probe-"+rand.Text())
	made := absent(folder)
	defer func() { err = errors.Join(err, removeEmpty(made)) }()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file := filepath.Join(folder, "probe")
	err = os.WriteFile(file, []byte("formetl doctor\n"), 0o600)
	if err == nil {
		_, err = os.ReadFile(file)
	}
	if gone := os.Remove(file); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
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

// mostEntries bounds how much of a state folder is looked at.
const mostEntries = 10_000

// foreigners counts what lies in the state folder, itself included, and is of another
// user. The error is that of a folder that cannot be read.
func foreigners(state string) (n int, err error) {
	seen := 0
	err = filepath.WalkDir(state, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // there is none yet, or a run removed it meanwhile
		}
		if err != nil {
			return err
		}
		if seen++; seen > mostEntries {
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // a run removed it meanwhile
		}
		if owner, known := ownerOf(info); known && owner != os.Geteuid() {
			n++
		}
		return nil
	})
	return n, err
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
