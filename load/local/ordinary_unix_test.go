//go:build unix

package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// TestOnlyFilesAreReplaced: a pipe, a device and a link keep their place, whatever is
// written there. What is no file is not read either, which would wait for ever.
func TestOnlyFilesAreReplaced(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(
		syscall.Mkfifo(at("pipe"), 0o600), os.WriteFile(at("file"), []byte("mine"), 0o600),
		os.Symlink("file", at("link")), os.Symlink("nothing", at("dangling")),
	); err != nil {
		t.Fatal(err)
	}
	names := []string{"pipe", "link", "dangling"}
	if syscall.Mknod(at("device"), syscall.S_IFCHR|0o600, 1<<8|3) == nil { // root alone may
		names = append(names, "device")
	}
	d := open(t, root)
	for _, name := range names {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		u, err := d.Stage(t.Context(), "run1", name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := u.Prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Replace = true
		_, asked := d.Stat(t.Context(), name)
		for what, err := range map[string]error{
			"commit": d.Commit(t.Context(), p), "put": d.Put(t.Context(), name, []byte("x"), load.AnyVersion), "ask": asked,
		} {
			if refused := errors.Is(err, load.ErrUnusable); !refused {
				t.Errorf("%s of %s: %v", what, name, err)
			}
		}
		if after, err := os.Lstat(at(name)); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", name, err)
		}
	}
	if _, _, err := d.Get(t.Context(), "pipe"); err == nil || errors.Is(err, load.ErrNotExist) {
		t.Errorf("a pipe was read: %v", err)
	}
	if _, err := d.Open(t.Context(), "pipe"); err == nil || errors.Is(err, load.ErrNotExist) {
		t.Errorf("a pipe was opened: %v", err)
	}
	if o, err := d.Stat(t.Context(), "file"); err != nil || o.Bytes != 4 || o.Name != "file" || time.Since(o.Changed) > time.Hour || o.Marked {
		t.Errorf("a file: %+v, %v", o, err)
	}
	for _, name := range []string{"nothing", "no/such", "file/x"} {
		if _, err := d.Stat(t.Context(), name); !errors.Is(err, load.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
