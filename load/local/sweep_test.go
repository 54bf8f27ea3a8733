package local

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/formetl/formetl/load"
)

func TestStagedName(t *testing.T) {
	for final, want := range map[string]string{
		"x.csv": "x.csv",
		"dt=2026-01-01/Größe und データ.parquet": "dt=2026-01-01/Größe und データ.parquet",
		strings.Repeat("a", 100) + ".parquet": strings.Repeat("a", 100) + ".parquet",
		strings.Repeat("a/", 200) + "x.csv":   "", // does not fit
	} {
		name := stagedName("run1", final)
		run, id, ok := load.ParseStagedName(name)
		if !ok || run != "run1" {
			t.Errorf("%s is of %q, %v", name, run, ok)
		}
		base := path.Base(name)
		if len(base) > maxBase || strings.Contains(base, ".") || load.CheckName(name) != nil {
			t.Errorf("the staged file of %.40s is called %s", final, name)
		}
		if name == stagedName("run1", final) {
			t.Errorf("%s is made twice", name)
		}
		if got := stagedFor(id); got != want {
			t.Errorf("%s tells %q, want %q", name, got, want)
		}
	}
	// What others called their files.
	hostile := base64.RawURLEncoding.EncodeToString([]byte("../../etc/passwd"))
	for _, name := range []string{"X", "", "X-", "X-%%%", "X-" + hostile} {
		if final := stagedFor(name); final != "" {
			t.Errorf("%s tells %q", name, final)
		}
	}
	for _, name := range []string{
		"staged-X", "x/run1/staged-X", ".formetl/staged-X", ".formetl/lease/staged-X", ".formetl/staged/staged-X", ".formetl/run1/spool", ".formetl/run1/a/staged-X",
	} {
		if _, _, ok := load.ParseStagedName(name); ok {
			t.Errorf("%s is taken for a run's staged file", name)
		}
	}
}

// The control folder may be shared: with a state folder, with what people put
// there. Only formetl's own leftovers are told and removed.
func TestLeftoversAmongOthers(t *testing.T) {
	d := at(t, t.TempDir())
	ours := map[string]load.LeftoverKind{".formetl/put-X": load.Temporary, ".formetl/run1/staged-X": load.StagedFile}
	others := []string{
		".formetl/put-folder/x", ".formetl/checkpoint/0123/0000000-rows", ".formetl/checkpoint/0123/header", ".formetl/run1/notes", ".formetl/run1/deeper/staged-X", ".formetl/lease", ".formetl/lease-0123",
		".formetl/staged-X", "put-X", "run1/staged-X", "x.csv",
	}
	write := func(name string) {
		t.Helper()
		file := filepath.Join(d.root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("data"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range others {
		write(name)
	}
	for name := range ours {
		write(name)
	}
	cleaned, err := load.Clean(t.Context(), d, "", load.Holder{RunID: "cleaner"}, load.CleanOptions{})
	if err != nil || len(cleaned.Removed) != len(ours) {
		t.Fatalf("removed are %+v, %v", cleaned.Removed, err)
	}
	for _, l := range cleaned.Removed {
		name, _ := filepath.Rel(d.root, l.Path)
		if ours[filepath.ToSlash(name)] != l.Kind || l.Bytes != 4 || time.Since(l.Since) > time.Hour {
			t.Errorf("removed is %+v", l)
		}
	}
	for _, name := range others {
		if err := d.Abort(t.Context(), load.Prepared{Name: "x.csv", Staged: name}); err == nil {
			t.Errorf("%s is removed", name)
		}
		if name == ".formetl/lease" {
			continue // the cleaner's lease took its place
		}
		if _, err := os.Stat(filepath.Join(d.root, name)); err != nil {
			t.Error(err)
		}
	}
	if held, err := d.Holders(t.Context()); err != nil || len(held) > 0 {
		t.Errorf("files without a lock are held by %+v, %v", held, err)
	}
}

// A probe is removed at once, so that only one of a killed process grows old.
func TestProbeThatGrewOld(t *testing.T) {
	d := at(t, t.TempDir())
	for _, name := range []string{"OLD", "NEW"} {
		if err := d.Put(t.Context(), load.ProbePrefix+name, []byte("x"), load.NoVersion); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(d.root, load.ProbePrefix+"OLD")
	then := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	cleaned, err := load.Clean(t.Context(), d, "", load.Holder{RunID: "cleaner"}, load.CleanOptions{})
	if err != nil || len(cleaned.Removed) != 1 || cleaned.Removed[0].Path != old || cleaned.Removed[0].Kind != load.Temporary {
		t.Fatalf("removed are %+v, %v", cleaned.Removed, err)
	}
	if names, err := d.List(t.Context(), load.ControlFolder+"/"); err != nil || len(names) != 1 || names[0].Name != load.ProbePrefix+"NEW" {
		t.Errorf("%v, %v", names, err)
	}
}

// A file that is being put is not taken away from its writer: it has the lock.
func TestRemoveWaitsForPut(t *testing.T) {
	d := at(t, t.TempDir())
	root, err := d.open(t.Context(), "open", "", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	unlock, err := d.lock(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(d.root, load.ControlFolder, "put-X")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*lockRetry)
	defer cancel()
	if err := d.Delete(ctx, ".formetl/put-X"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is written: %v", err)
	}
	if _, err := os.Stat(temp); err != nil {
		t.Error(err)
	}
	unlock()
	if err := d.Delete(t.Context(), ".formetl/put-X"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(temp); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestStoppedCommitLeavesNoFolder: a commit that is stopped while it waits for the lock takes
// the partition's folder away that it had made.
func TestStoppedCommitLeavesNoFolder(t *testing.T) {
	d := at(t, t.TempDir())
	u, err := d.Stage(t.Context(), "run1", "dt=2026-01-01/part.csv")
	if err != nil {
		t.Fatal(err)
	}
	p, err := u.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := d.open(t.Context(), "open", "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	unlock, err := d.lock(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*lockRetry)
	defer cancel()
	if err := d.Commit(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another one writes: %v", err)
	}
	unlock()
	if _, err := os.Stat(filepath.Join(d.root, "dt=2026-01-01")); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if err := d.Commit(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// A lease whose lock somebody shares is not held; who shares it for long keeps
// runs out all the same, and they are told.
func TestLeaseIsShared(t *testing.T) {
	d := at(t, t.TempDir())
	if err := os.MkdirAll(filepath.Join(d.root, load.ControlFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(d.root, load.ControlFolder, load.LeaseName)
	other := flock.New(file)
	if ok, err := other.TryRLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if held, err := d.Holders(t.Context()); err != nil || len(held) > 0 {
		t.Errorf("held by %+v, %v", held, err)
	}
	var held *load.HeldError
	if _, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run1"}); !errors.As(err, &held) {
		t.Errorf("acquire gives %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A link to a folder is not followed.
func TestListLeavesOut(t *testing.T) {
	d := at(t, t.TempDir())
	for _, name := range []string{".formetl/put-X", ".formetl/intent", ".formetl/put-folder/put-X", "a/put-X"} {
		file := filepath.Join(d.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("..", filepath.Join(d.root, "a", "up")), os.Symlink("put-X", filepath.Join(d.root, "a", "link")),
		os.Symlink("../../x", filepath.Join(d.root, "a", "out")), os.Symlink("gone", filepath.Join(d.root, "a", "broken"))); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{
		load.ControlFolder: {".formetl/intent", ".formetl/put-X", ".formetl/put-folder/put-X"}, "a": {"a/link", "a/put-X"},
	} {
		if got, err := d.List(t.Context(), folder+"/"); err != nil || !slices.Equal(load.NamesOf(got), want) {
			t.Errorf("below %s lie %q, %v, want %q", folder, load.NamesOf(got), err, want)
		}
	}
}
