//go:build unix

package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

const countEnv = "FORMETL_TEST_COUNT" // a child counts up in this folder

// TestMain is also the main function of the children that a test starts.
func TestMain(m *testing.M) {
	root := os.Getenv(countEnv)
	if root == "" {
		os.Exit(m.Run())
	}
	if err := count(root); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func prepare(t *testing.T, d load.Destination, name, content string) load.Prepared {
	t.Helper()
	u, err := d.Stage(t.Context(), "run1", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(u, content); err != nil {
		t.Fatal(err)
	}
	p, err := u.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestModes(t *testing.T) {
	for _, test := range []struct {
		umask        int
		file, folder fs.FileMode
	}{
		{0, 0o640, 0o750},
		{0o022, 0o640, 0o750},
		{0o077, 0o600, 0o700}, // a stricter umask is the administrator's word
	} {
		base := t.TempDir()
		old := syscall.Umask(test.umask)
		defer syscall.Umask(old)
		d := open(t, filepath.Join(base, "new", "out"))
		p := prepare(t, d, "dt=1/part.csv", "x")
		if got := mode(t, filepath.Join(d.String(), p.Staged)); got != test.file {
			t.Errorf("the staged file is %o", got)
		}
		must(t, d.Commit(t.Context(), p))
		must(t, d.Put(t.Context(), "_SUCCESS", nil, load.AnyVersion))
		for name, want := range map[string]fs.FileMode{
			"dt=1/part.csv": test.file, "_SUCCESS": test.file, "dt=1": test.folder, "": test.folder, "..": test.folder,
		} {
			if got := mode(t, filepath.Join(d.String(), name)); got != want {
				t.Errorf("umask %o: %q is %o, want %o", test.umask, name, got, want)
			}
		}
	}
}

// What lies where a folder or a file should be is told and left alone.
func TestSomethingInTheWay(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	must(t, os.WriteFile(file, []byte("mine"), 0o600))
	wantCreate := func(what string, err error) {
		t.Helper()
		create, ok := errors.AsType[*load.Error](err)
		if !ok || create.Kind != load.ErrUnusable || create.Remedy == "" || !strings.Contains(err.Error(), base) {
			t.Errorf("%s gives %v, want a load.ErrUnusable with a path and a hint", what, err)
		}
	}
	for _, root := range []string{file, filepath.Join(file, "below")} {
		d := open(t, root)
		_, err := d.Stage(t.Context(), "run1", "x.csv")
		wantCreate("stage", err)
		wantCreate("put", d.Put(t.Context(), "x", nil, load.AnyVersion))
		_, err = d.Acquire(t.Context(), "", load.Holder{})
		wantCreate("acquire", err)
		must(t, d.Delete(t.Context(), "x"))
		must(t, d.Abort(t.Context(), load.Prepared{Name: "x", Staged: ".formetl/run1/staged-x"}))
		if _, _, err := d.Get(t.Context(), "x"); !errors.Is(err, load.ErrNotExist) {
			t.Errorf("get gives %v", err)
		}
	}
	d := open(t, filepath.Join(base, "out"))
	must(t, d.Put(t.Context(), "dt=1", []byte("a file"), load.AnyVersion))
	wantCreate("commit under a file", d.Commit(t.Context(), prepare(t, d, "dt=1/x.csv", "x")))
	must(t, os.Mkdir(filepath.Join(d.String(), "folder.csv"), 0o700))
	p := prepare(t, d, "folder.csv", "x")
	wantCreate("commit onto a folder", d.Commit(t.Context(), p))
	p.Replace = true
	wantCreate("replace a folder", d.Commit(t.Context(), p))
	wantCreate("put onto a folder", d.Put(t.Context(), "folder.csv", nil, load.AnyVersion))
	must(t, d.Delete(t.Context(), "folder.csv")) // no object, so nothing to delete
	if _, err := os.Stat(filepath.Join(d.String(), "folder.csv")); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file in the way holds %q, %v", data, err)
	}
}

// Links inside the root are followed, those that lead out are refused.
func TestLinks(t *testing.T) {
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	must(t, os.MkdirAll(outside, 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	real := filepath.Join(base, "real")
	must(t, os.MkdirAll(filepath.Join(real, "inside"), 0o700))
	must(t, os.Symlink(real, filepath.Join(base, "root")))
	must(t, os.Symlink("inside", filepath.Join(real, "in")))
	must(t, os.Symlink(outside, filepath.Join(real, "out")))
	must(t, os.Symlink("../outside", filepath.Join(real, "up")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(real, "link.csv")))
	d := open(t, filepath.Join(base, "root")) // the root itself may be a link

	must(t, d.Commit(t.Context(), prepare(t, d, "in/x.csv", "x")))
	if data, err := os.ReadFile(filepath.Join(real, "inside", "x.csv")); err != nil || string(data) != "x" {
		t.Errorf("through a link inside: %q, %v", data, err)
	}
	for _, folder := range []string{"out", "up"} {
		p := prepare(t, d, folder+"/x.csv", "x")
		if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrUnusable) {
			t.Errorf("commit through a link that leads out gives %v", err)
		}
		must(t, d.Abort(t.Context(), p))
		if err := d.Put(t.Context(), folder+"/x", nil, load.AnyVersion); !errors.Is(err, load.ErrUnusable) {
			t.Errorf("put gives %v", err)
		}
		if _, _, err := d.Get(t.Context(), folder+"/secret"); err == nil {
			t.Error("get reads outside")
		}
		if err := d.Delete(t.Context(), folder+"/secret"); err == nil {
			t.Error("delete removes outside")
		}
	}
	// A final name that is a link is neither followed nor replaced.
	p := prepare(t, d, "link.csv", "new")
	p.Replace = true
	if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrUnusable) {
		t.Errorf("commit over a link gives %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "secret" {
		t.Errorf("the link's target holds %q, %v", data, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
}

// A control folder that leads away is not followed, by locks neither.
func TestControlFolderLeadsAway(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(root, load.ControlFolder)))
	d := open(t, root)
	if _, err := d.Stage(t.Context(), "run1", "x.csv"); err == nil {
		t.Error("stage follows it")
	}
	if err := d.Put(t.Context(), "x", nil, load.AnyVersion); err == nil {
		t.Error("put follows it")
	}
	if _, err := d.Acquire(t.Context(), "", load.Holder{}); err == nil {
		t.Error("acquire follows it")
	}
	if found := names(t, outside); len(found) > 0 {
		t.Errorf("outside holds %v", found)
	}
}

// A record may come from anywhere: it names no file that is not staged.
func TestHostilePrepared(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	must(t, d.Put(t.Context(), "data.csv", []byte("data"), load.AnyVersion))
	must(t, d.Put(t.Context(), ".formetl/intent", []byte("{}"), load.AnyVersion))
	victim := filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("x"), 0o600))
	for _, staged := range []string{
		"", "data.csv", victim, "../victim", ".formetl/intent", ".formetl/run1/../../data.csv",
		".formetl/../data.csv", ".formetl/a/b/c", ".formetl/lease/x", ".formetl", "x/run1/staged-1",
	} {
		p := load.Prepared{Name: "new.csv", Staged: staged, Bytes: 4, SHA256: strings.Repeat("0", 64)}
		if err := d.Abort(t.Context(), p); !errors.Is(err, load.ErrConfig) {
			t.Errorf("abort of %q gives %v", staged, err)
		}
		if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrConfig) {
			t.Errorf("commit of %q gives %v", staged, err)
		}
	}
	if got := strings.Join(names(t, root), " "); got != ".formetl/intent data.csv" {
		t.Errorf("left %s", got)
	}
}

// A staged file that lost bytes is not committed.
func TestCommitChecksLength(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	p := prepare(t, d, "part.csv", "content")
	must(t, os.Truncate(filepath.Join(root, p.Staged), 3))
	if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrFailed) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "part.csv")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is visible: %v", err)
	}
}

const counts = 15

// count adds so many marks by compare-and-swap.
func count(root string) error {
	d, err := local.New(root)
	if err != nil {
		return err
	}
	for done := 0; done < counts; {
		data, version, err := d.Get(context.Background(), "counter")
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			return err
		}
		err = d.Put(context.Background(), "counter", append(data, '+'), version)
		switch {
		case err == nil:
			done++
		case !errors.Is(err, load.ErrConflict):
			return err
		}
	}
	return nil
}

func TestSwapBetweenProcesses(t *testing.T) {
	root := t.TempDir()
	const sides = 3
	children := make([]*exec.Cmd, 0, sides)
	for range sides {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), countEnv+"="+root)
		cmd.Stdout = os.Stderr
		must(t, cmd.Start())
		children = append(children, cmd)
	}
	for _, cmd := range children {
		must(t, cmd.Wait())
	}
	data, _, err := open(t, root).Get(t.Context(), "counter")
	if err != nil || len(data) != len(children)*counts {
		t.Errorf("counted to %d, %v", len(data), err)
	}
	if got := strings.Join(names(t, root), " "); got != "counter" {
		t.Errorf("left %s", got)
	}
}
