package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/local"
)

// names lists every file below root, and every folder that is empty, as a
// folder that is left behind is litter.
func names(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil || rel == "." {
			return err
		}
		if !e.IsDir() {
			found = append(found, filepath.ToSlash(rel))
			return nil
		}
		entries, err := os.ReadDir(p)
		if len(entries) == 0 {
			found = append(found, filepath.ToSlash(rel)+"/")
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func open(t *testing.T, root string) *local.Destination {
	t.Helper()
	d, err := local.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDestination(t *testing.T) {
	loadtest.Destination(t, func(t *testing.T) loadtest.Place {
		root := filepath.Join(t.TempDir(), "out", "form1")
		return loadtest.Place{
			Open:  func() load.Destination { return open(t, root) },
			Names: func() []string { return names(t, root) },
		}
	})
}

func TestNew(t *testing.T) {
	_, err := local.New("")
	if !errors.Is(err, load.ErrUnusable) {
		t.Errorf("an empty path gives %v", err)
	}
	root := filepath.Join(t.TempDir(), "out")
	d := open(t, root)
	if d.String() != root {
		t.Errorf("the root is %s", d)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made though nothing was written: %v", err)
	}
}

// Every use of a root that is gone finds nothing, and none makes it again.
func TestRootGone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out")
	d := open(t, root)
	u, err := d.Stage(t.Context(), "run1", "x.csv")
	if err != nil {
		t.Fatal(err)
	}
	p, err := u.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrStagedGone) {
		t.Errorf("commit gives %v", err)
	}
	if err := errors.Join(d.Abort(t.Context(), p), d.Delete(t.Context(), "x.csv")); err != nil {
		t.Error(err)
	}
	if _, _, err := d.Get(t.Context(), "x.csv"); !errors.Is(err, load.ErrNotExist) {
		t.Errorf("get gives %v", err)
	}
	if err := d.Check(t.Context(), p); !errors.Is(err, load.ErrStagedGone) {
		t.Errorf("check gives %v", err)
	}
	names, err := d.List(t.Context(), "a")
	left, leftErr := d.Staged(t.Context())
	held, heldErr := d.Holders(t.Context())
	if err := errors.Join(err, leftErr, heldErr, d.Abort(t.Context(), p)); err != nil || len(names)+len(left)+len(held) > 0 {
		t.Errorf("there are %v, %v, %v, %v", names, left, held, err)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is back: %v", err)
	}
}
