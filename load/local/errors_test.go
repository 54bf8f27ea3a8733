package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/load/loadtest"

	"github.com/formetl/formetl/load"
)

// Root may write anywhere, so the classes of errors are tried one by one.
// at returns the destination at a folder.
func at(t testing.TB, root string) *Destination {
	t.Helper()
	d, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFail(t *testing.T) {
	wrap := func(err error) error { return &fs.PathError{Op: "open", Path: "/secret/inner", Err: err} }
	for _, test := range []struct {
		err    error
		device bool
		want   string
	}{
		{wrap(syscall.ENOSPC), true, "free some space"},
		{wrap(syscall.EFBIG), true, "ulimit -f"},
		{wrap(syscall.EDQUOT), true, "free some space"},
		{wrap(syscall.EIO), true, "check the disk"},
		{wrap(syscall.EFBIG), true, "file too large"},
		{wrap(errLength), true, "check the disk"},
		{wrap(syscall.EROFS), false, "mounted read-only"},
		{wrap(syscall.EACCES), false, "give the user who runs formetl the right to write there"},
		{wrap(syscall.EPERM), false, "give the user who runs formetl the right to write there"},
		{wrap(syscall.ENOENT), false, "its disk is mounted"},
		{wrap(syscall.ENOTDIR), false, "a file lies where a folder is needed"},
		{wrap(syscall.EISDIR), false, "something else has this name"},
		{wrap(syscall.EEXIST), false, "something else has this name"},
		{wrap(syscall.ENAMETOOLONG), false, "choose a shorter path"},
		{wrap(syscall.ELOOP), false, "in a circle"},
		{wrap(errors.New("path escapes from parent")), false, "leads out of the output's folder"},
		{&os.LinkError{Op: "link", Old: "a", New: "/secret/inner", Err: syscall.EIO}, true, "check the disk"},
	} {
		err := fail("create", "/out/x.csv", test.err)
		if errors.Is(err, load.ErrFailed) != test.device || errors.Is(err, load.ErrUnusable) == test.device {
			t.Errorf("%v is told as %T", test.err, err)
		}
		text := loadtest.Told(err)
		if !strings.HasPrefix(text, "cannot create /out/x.csv: ") || !strings.Contains(text, test.want) || strings.Contains(text, "inner") {
			t.Errorf("%v is told as %q, want %q", test.err, text, test.want)
		}
	}
}

func TestFailKeepsWhatIsTold(t *testing.T) {
	inner := &load.Error{Kind: load.ErrUnusable, Op: "lock", Path: "/out", Err: syscall.EROFS}
	for _, err := range []error{nil, inner, fmt.Errorf("x: %w", inner), context.Canceled, context.DeadlineExceeded} {
		if got := fail("write", "/out", err); got != err { //nolint:errorlint // the very same is wanted
			t.Errorf("%v is told as %v", err, got)
		}
	}
}

func TestFailRead(t *testing.T) {
	err := failRead("read", "/out/x", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES})
	if !errors.Is(err, load.ErrFailed) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

// A full disk, as /dev/full plays it.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Logf("this system has no /dev/full, TestFail alone covers a full disk: %v", err)
		return
	}
	root := t.TempDir()
	d := at(t, root)
	stage := func() *upload {
		u, err := d.Stage(t.Context(), "run1", "x.csv")
		if err != nil {
			t.Fatal(err)
		}
		return u.(*upload)
	}
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, load.ErrFailed) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(loadtest.Told(err), "free some space") {
			t.Errorf("%s gives %v", what, err)
		}
	}
	u := stage()
	own := u.file
	u.file = full
	u.buffer.Reset(io.MultiWriter(full, u.hash))
	_, err = u.Write(make([]byte, 2*bufferSize))
	check("write", err)
	_, err = u.Write([]byte("more"))
	check("write after that", err)
	if err := errors.Join(own.Close(), u.Abort()); err != nil {
		t.Error(err)
	}
	full, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	u = stage()
	own = u.file
	u.file = full
	u.buffer.Reset(io.MultiWriter(full, u.hash))
	if _, err := u.Write([]byte("short")); err != nil {
		t.Fatalf("a short write is buffered: %v", err)
	}
	_, err = u.Prepare(t.Context())
	check("prepare", err)
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// A waiter that gets the lock of a file which its holder removed has locked
// nothing.
func TestLockOfRemovedFile(t *testing.T) {
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
	if err := root.Remove(load.ControlFolder + "/" + lockName); err != nil {
		t.Fatal(err)
	}
	again, err := at(t, d.root).lock(t.Context(), root) // a new file, so another lock
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, d := range []*Destination{d, at(t, d.root)} { // it waits for its own goroutine, or for the file
		if _, err := d.lock(ctx, root); !errors.Is(err, context.Canceled) {
			t.Errorf("a third one gives %v", err)
		}
	}
	again()
	unlock()
}
