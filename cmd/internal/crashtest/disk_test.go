package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobodyID is the user and group that a run is given to be refused: root is
// refused nothing.
const nobodyID = 65534

// mount mounts a file system of so many MB. It tells where it is not allowed
// to.
func mount(t *testing.T, dir string, megabytes int) bool {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // another user reads it too
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm,mode=0777", megabytes), "tmpfs", dir).CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: NO FILE SYSTEM CAN BE MOUNTED HERE, SO THIS IS TESTED WITHOUT ONE WHERE IT CAN BE: %v %s\n", t.Name(), err, out)
		return false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("%s stays mounted: %v", dir, err)
		}
	})
	return true
}

// remount changes a mounted file system.
func remount(t *testing.T, dir, options string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "remount,"+options, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// badDisk is a disk that fails a run after another run was committed.
type badDisk struct {
	name string
	// place and state tell where the run writes, below dir.
	place, state func(dir string) string
	// spoil is called between the two runs, mend before the third. It tells
	// what formetl is started by, nil for itself.
	spoil func(t *testing.T, dir string) (start []string)
	mend  func(t *testing.T, dir string)
	part  string // partition
	code  int
	says  []string
}

func lakeOn(disk string) func(string) string {
	return func(dir string) string { return filepath.Join(dir, disk, "lake") }
}

func stateOn(disk string) func(string) string {
	return func(dir string) string { return filepath.Join(dir, disk, "state") }
}

func badDisks() []badDisk {
	plain := func(*testing.T, string) {}
	small := func(t *testing.T, dir string) []string {
		remount(t, filepath.Join(dir, "mount"), "size=2m")
		return nil
	}
	large := func(t *testing.T, dir string) { remount(t, filepath.Join(dir, "mount"), "size=64m") }
	frozen := func(t *testing.T, dir string) []string {
		remount(t, filepath.Join(dir, "mount"), "ro")
		return nil
	}
	thawed := func(t *testing.T, dir string) { remount(t, filepath.Join(dir, "mount"), "rw") }
	shut := func(folder func(string) string) func(*testing.T, string) []string {
		return func(t *testing.T, dir string) []string {
			chmodAll(t, folder(dir), 0o555)
			return nil
		}
	}
	opened := func(folder func(string) string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { chmodAll(t, folder(dir), 0o777) }
	}
	// Blocks are of 512 bytes or of 1 kB, as the shell likes.
	limited := func(blocks int) func(*testing.T, string) []string {
		return func(*testing.T, string) []string {
			return []string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, blocks), "sh"}
		}
	}
	disk2 := func(dir string) string { return filepath.Join(dir, "disk2") }
	return []badDisk{
		{"a full disk", lakeOn("mount"), stateOn("disk"), small, large, "day", 74, []string{"no space left", "free some space", "lake"}},
		{"a full state folder", lakeOn("disk"), stateOn("mount"), small, large, "day", 74, []string{"no space left", "state", "--state"}},
		{"a file system that is read-only", lakeOn("mount"), stateOn("disk"), frozen, thawed, "day", 73, []string{"mounted read-only", "lake"}},
		{"a state on a file system that is read-only", lakeOn("disk"), stateOn("mount"), frozen, thawed, "day", 73, []string{"read-only", "state", "--state"}},
		{"a checkpoint that may not grow", lakeOn("disk"), stateOn("disk"), limited(100), plain, "day", 74, []string{"file too large", "state", "--state"}},
		{"a part that may not grow", lakeOn("disk"), stateOn("disk"), limited(2000), plain, "month", 74, []string{"file too large", "lake"}},
		{"a folder that is read-only", lakeOn("disk"), stateOn("disk2"), shut(lakeOn("disk")), opened(lakeOn("disk")), "day", 73, []string{"permission denied", "let this user write there", "lake"}},
		{"a state folder that is read-only", lakeOn("disk"), stateOn("disk2"), shut(disk2), opened(disk2), "day", 73, []string{"permission denied", "state", "--state"}},
	}
}

func chmodAll(t *testing.T, root string, mode os.FileMode) {
	t.Helper()
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.IsDir() {
			return err
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBadDisks commits three days, lets the disk fail while twenty are to be
// written, and mends it. What was committed stays whole, nothing half-written
// is visible, and the run after that writes the truth.
func TestBadDisks(t *testing.T) {
	january := time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range badDisks() {
		t.Run(c.name, func(t *testing.T) {
			dir := worldDir(t)
			mounted := strings.HasPrefix(c.place(dir), filepath.Join(dir, "mount")) || strings.HasPrefix(c.state(dir), filepath.Join(dir, "mount"))
			if mounted && !mount(t, filepath.Join(dir, "mount"), 64) {
				return // what may not grow is the nearest to it
			}
			form := newBigForm(20*24, 9_000, january, time.Hour)
			w := newWorldsOf(t, kind{"disk", false}, form, "from: 2025-01-01, to: 2025-01-21, window: 1d", output{"", "ndjson", ".ndjson", declared, c.part})[0]
			w.dir, w.losing, w.state = dir, disk{c.place(dir)}, c.state(dir)
			define(declared, w)
			later := newBigForm(3*24, 9_000, january, time.Hour)
			all := w.service.Forms
			w.service.SetForms(later)
			w.asNobody(nil, 0)
			w.whole(truth(later))
			w.service.SetForms(all...)
			w.asNobody(c.spoil(t, dir), c.code, c.says...)
			w.whole(truth(later))
			c.mend(t, dir)
			w.asNobody(nil, 0)
			w.whole(truth(form))
			w.clean()
		})
	}
}

// asNobody runs the pipeline as a user to whom modes matter, started by a command of its own
// where one is given, and holds how it ends.
func (w *world) asNobody(start []string, code int, says ...string) {
	w.t.Helper()
	p := w.pipeline("")
	if len(start) > 0 {
		p.Path, p.Args = start[0], append(start, p.Args...)
	}
	if os.Geteuid() == 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	}
	switch o := w.do(p); {
	case code != 0:
		o.failed(w.t, code, says...)
	case o.code != 0:
		w.t.Fatalf("ended with %d:\n%s", o.code, o.stderr)
	}
}

// worldDir is a folder that every user may reach and write into, unlike
// t.TempDir's.
func worldDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared.dir, "world-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, d := range []string{dir, filepath.Join(dir, "disk"), filepath.Join(dir, "disk2")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil { //nolint:gosec // this is what it is for
			t.Fatal(err)
		}
	}
	return dir
}
