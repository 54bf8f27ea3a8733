package faulttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// diskForm is 20 days of 24 results of 9 kB: 216 kB a day, 4.3 MB in all.
func diskForm() *bulk {
	return &bulk{results: 480, values: 3, length: 3_000, from: january(1), step: time.Hour}
}

const (
	firstDays = "from: 2025-01-01, to: 2025-01-04, window: 1d"
	allDays   = "from: 2025-01-01, to: 2025-01-21, window: 1d"
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
		{"a full disk", lakeOn("mount"), stateOn("disk"), small, large, "day", exitIO, []string{"no space left", "free some space", "lake"}},
		{"a full state folder", lakeOn("disk"), stateOn("mount"), small, large, "day", exitIO, []string{"no space left", "state", "--state"}},
		{"a file system that is read-only", lakeOn("mount"), stateOn("disk"), frozen, thawed, "day", exitCantCreate, []string{"mounted read-only", "lake"}},
		{"a state on a file system that is read-only", lakeOn("disk"), stateOn("mount"), frozen, thawed, "day", exitCantCreate, []string{"read-only", "state", "--state"}},
		{"a checkpoint that may not grow", lakeOn("disk"), stateOn("disk"), limited(100), plain, "day", exitIO, []string{"file too large", "state", "--state"}},
		{"a part that may not grow", lakeOn("disk"), stateOn("disk"), limited(2000), plain, "month", exitIO, []string{"file too large", "lake"}},
		{"a folder that is read-only", lakeOn("disk"), stateOn("disk2"), shut(lakeOn("disk")), opened(lakeOn("disk")), "day", exitCantCreate, []string{"permission denied", "let this user write there", "lake"}},
		{"a state folder that is read-only", lakeOn("disk"), stateOn("disk2"), shut(disk2), opened(disk2), "day", exitCantCreate, []string{"permission denied", "state", "--state"}},
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
	form := diskForm()
	url := form.serve(t)
	before := job{service: url, extract: firstDays, part: "day"}.truth(t, form.ids()[:72])
	after := job{service: url, extract: allDays, part: "day"}.truth(t, form.ids())
	for _, c := range badDisks() {
		t.Run(c.name, func(t *testing.T) {
			dir := worldDir(t)
			j := job{service: url, extract: firstDays, part: c.part, state: c.state(dir)}
			lake := folder{c.place(dir)}
			mounted := strings.HasPrefix(c.place(dir), filepath.Join(dir, "mount")) || strings.HasPrefix(c.state(dir), filepath.Join(dir, "mount"))
			if mounted && !mount(t, filepath.Join(dir, "mount"), 64) {
				return // what may not grow is the nearest to it
			}
			runAsNobody(t, dir, nil, "run", j.definition(t, dir, lake)).wantOK(t)
			check(t, lake, before)
			start := c.spoil(t, dir)
			j.extract = allDays
			definition := j.definition(t, dir, lake)
			r := runAsNobody(t, dir, start, "run", definition)
			r.wantError(t, c.code, c.says...)
			check(t, lake, before)
			c.mend(t, dir)
			runAsNobody(t, dir, nil, "run", definition).wantOK(t)
			check(t, lake, after)
			checkSwept(t, dir, nil, definition, lake)
		})
	}
}

// worldDir is a folder that every user may reach and write into, unlike
// t.TempDir's.
func worldDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(program), "world-")
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

// runAsNobody runs formetl as a user to whom modes matter, started by a
// command of its own where one is given.
func runAsNobody(t testing.TB, dir string, start []string, args ...string) result {
	t.Helper()
	p := command(t, dir, nil, append(append(append([]string(nil), start...), program), args...)...)
	if os.Geteuid() == 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	}
	p.start(t)
	return p.end(t)
}

// checkSwept cleans up after dead runs and holds that nothing is left of them
// and all that is visible stays.
func checkSwept(t testing.TB, dir string, env []string, definition string, p place) {
	t.Helper()
	seen := visible(names(p.objects(t)))
	if r := run(t, dir, env, "clean", definition); r.code != exitOK {
		t.Errorf("clean ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	objects := p.objects(t)
	for name := range objects {
		if strings.HasPrefix(name, load.ControlFolder+"/") {
			t.Errorf("%s is left after clean", name)
		}
	}
	if left := p.uploads(t); len(left) > 0 {
		t.Errorf("%d uploads are left after clean", len(left))
	}
	if now := visible(names(objects)); strings.Join(now, " ") != strings.Join(seen, " ") {
		t.Errorf("clean changed what is visible from %v to %v", seen, now)
	}
}

// TestFullStdout exports to a device that is full.
func TestFullStdout(t *testing.T) {
	url := diskForm().serve(t)
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		t.Run(format, func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = full.Close() }() // nothing was written
			dir := t.TempDir()
			p := formetl(t, dir, nil, "export", "--base-url", url, "--account", "acme", "--form", "form1", "--timezone", "UTC", "--format", format)
			p.Stdout = full
			p.start(t)
			p.end(t).wantError(t, exitIO, "no space left")
		})
	}
}
