//go:build duckdb

package duckdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/load/loadtest/tablerun"
)

// stageRun stages a run that replaces the whole table by n rows, which hold the run's id.
func stageRun(t *testing.T, d *Destination, run string, n int) load.DatasetCommit {
	t.Helper()
	return tablerun.Run(t, d, Format(), run, n)
}

// recordRun commits run1 with three rows, and records the commit of run2 with five.
func recordRun(t *testing.T, d *Destination) *load.Recorded {
	t.Helper()
	if err := stageRun(t, d, "run1", 3).Do(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	recorded, err := stageRun(t, d, "run2", 5).Record(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return recorded
}

// holds checks that the table holds the rows of a run, and that nothing is staged.
func holds(t *testing.T, client *duckdb.Client, file, table, run string, n int) {
	t.Helper()
	got, err := client.Query(file, "SELECT text, count(*) FROM "+table+" GROUP BY text")
	if err != nil || !slices.Equal(got, []string{fmt.Sprintf("%s|%d", run, n)}) {
		t.Fatalf("the table holds %q, %v, want %d rows of %s", got, err, n, run)
	}
	d := open(t, file, table)
	if m, _, err := load.ReadManifest(t.Context(), d, load.ManifestName); err != nil || m.RunID != run {
		t.Fatalf("the manifest is of %+v, %v", m, err)
	}
	if left, err := d.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Fatalf("left over is %+v, %v", left, err)
	}
}

// A process that is killed after the database committed leaves what lies in the folder. The
// next run finds the commit done.
func TestKilledBehindTheTransaction(t *testing.T) {
	client := duckdb.NewClient(t)
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("staged files are gone=", gone), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "w.duckdb")
			d := open(t, file, "main.t")
			recorded := recordRun(t, d)
			kept := t.TempDir()
			if err := os.CopyFS(kept, os.DirFS(d.folder.String())); err != nil {
				t.Fatal(err)
			}
			if err := recorded.Publish(t.Context()); err != nil {
				t.Fatal(err)
			}
			holds(t, client, file, "main.t", "run2", 5)
			if gone {
				if err := os.RemoveAll(filepath.Join(kept, load.ControlFolder, "run2")); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.CopyFS(d.folder.String(), os.DirFS(kept)); err != nil {
				t.Fatal(err)
			}
			r, err := load.Recover(t.Context(), open(t, file, "main.t"), "", nil)
			if err != nil || !r.Finished {
				t.Fatalf("the commit is recovered as %+v, %v", r, err)
			}
			holds(t, client, file, "main.t", "run2", 5)
			if left := names(t, client, file, "t"); slices.ContainsFunc(left, inFolder) {
				t.Fatalf("left is %q", left)
			}
		})
	}
}

// Somebody has the database open. A run waits, and ends with a temporary error if it takes
// too long. What it staged stays, and the next run finishes the commit.
func TestSomebodyHasItOpen(t *testing.T) {
	client := duckdb.NewClient(t)
	file := filepath.Join(t.TempDir(), "w.duckdb")
	d := open(t, file, "main.t")
	recorded := recordRun(t, d)
	let, err := client.Hold(file)
	if err != nil {
		t.Fatal(err)
	}
	d.wait = 100 * time.Millisecond
	err = recorded.Publish(t.Context())
	var busy *load.TemporaryError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), "another program has the database open") {
		t.Fatalf("a database that somebody has open gives %v", err)
	}
	if _, _, err := load.ReadManifest(t.Context(), d, load.ManifestName); err != nil {
		t.Fatalf("beside a reader formetl cannot read: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		d := open(t, file, "main.t")
		r, err := load.Recover(t.Context(), d, "", nil)
		if err == nil && !r.Finished {
			err = errors.New("the commit was taken back")
		}
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond)
	if err := let(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	holds(t, client, file, "main.t", "run2", 5)
}

// Runs into several tables of one database commit side by side, and a reader polls.
func TestTablesSideBySide(t *testing.T) {
	client := duckdb.NewClient(t)
	file := filepath.Join(t.TempDir(), "w.duckdb")
	const runs = 5
	var all sync.WaitGroup
	for table := range 4 {
		all.Go(func() {
			for n := range runs {
				d := open(t, file, fmt.Sprintf("main.t%d", table))
				lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run"})
				if err == nil {
					err = stageRun(t, d, fmt.Sprint("run", n), 100*(n+1)).Do(t.Context(), d)
				}
				if err == nil {
					err = lease.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for table := range 4 {
		holds(t, client, file, fmt.Sprintf("main.t%d", table), fmt.Sprint("run", runs-1), 100*runs)
	}
}

// What speaks against a file, with what the user is told.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.csv")
	if err := os.WriteFile(text, []byte(strings.Repeat("id,text\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{text: "no database of DuckDB", dir: "DuckDB"} {
		d := open(t, file, "main.t")
		err := d.Replaceable(t.Context(), load.ManifestName)
		var create *load.CreateError
		var failed *load.IOError
		if !errors.As(err, &create) && !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v", file, err)
		}
	}
	for _, at := range []string{"postgres://h/d/a.b/", "duckdb:///w.duckdb", "duckdb:///w.duckdb/t/", "duckdb:///w.duckdb/main._formetl_ids/", ""} {
		if d, err := New(at); err == nil {
			t.Errorf("%s is taken for %s", at, d)
		}
	}
	if _, err := Address("lake/"); err == nil {
		t.Error("a folder is taken for a file")
	}
}

// The file and what lies beside it is not for everybody.
func TestPermissions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new folder", "w.duckdb")
	d := open(t, file, "main.t")
	if err := stageRun(t, d, "run1", 3).Do(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{file: fileMode, filepath.Join(file+folderSuffix, "lock"): fileMode, file + folderSuffix: folderMode, filepath.Dir(file): folderMode} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// What DuckDB spilled before its process was killed goes with a later run, but not at once.
func TestSpillsOfTheDead(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "w.duckdb"), "main.t")
	folder := filepath.Join(d.folder.String(), load.ControlFolder)
	old, fresh := filepath.Join(folder, spillPrefix+"1"), filepath.Join(folder, spillPrefix+"2")
	for _, dir := range []string{old, fresh} {
		if err := os.MkdirAll(dir, folderMode); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * spillAge)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was spilled days ago is still there")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}

// TestLinks: a database has one lease for each table, by whatever path it is reached.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	folder, link := filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(folder, link)); err != nil {
		t.Fatal(err)
	}
	lease, err := open(t, filepath.Join(folder, "w.duckdb"), "main.t").Acquire(t.Context(), "", load.Holder{RunID: "run1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release(t.Context()) }()
	_, err = open(t, filepath.Join(link, "w.duckdb"), "main.t").Acquire(t.Context(), "", load.Holder{RunID: "run2"})
	if _, held := errors.AsType[*load.HeldError](err); !held {
		t.Errorf("the lease by another path: %v", err)
	}
}
