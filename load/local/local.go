package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/formetl/formetl/load"
)

const (
	fileMode   = 0o640
	folderMode = 0o750
	// attempts is how often a step is tried if someone else removes the empty
	// folder that it is about to use.
	attempts = 100
)

// Destination is a folder. Its methods are safe for concurrent use, also by
// several Destinations and several processes.
type Destination struct {
	root string // absolute
}

var (
	_ load.Destination = (*Destination)(nil)
	_ load.Leaser      = (*Destination)(nil)
)

// New returns the destination at the folder root. It touches nothing: the
// folder is made by the first write.
func New(root string) (*Destination, error) {
	if root == "" {
		return nil, &load.CreateError{Op: "use", Path: `""`, Hint: "give a folder", Err: errors.New("the path is empty")}
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, &load.CreateError{Op: "use", Path: root, Hint: "give an absolute path", Err: err}
	}
	return &Destination{root: abs}, nil
}

// Root returns the absolute path of the folder.
func (d *Destination) Root() string { return d.root }

// String returns the path, for messages.
func (d *Destination) String() string { return d.root }

// path gives the operating system's path of an object, for messages.
func (d *Destination) path(name string) string {
	return filepath.Join(d.root, filepath.FromSlash(name))
}

// open opens the root and makes it first if create is set. Each operation opens
// it anew. So a Destination needs no Close, and it never writes to a folder
// that has been replaced under its name.
func (d *Destination) open(create bool) (*os.Root, error) {
	if create {
		if err := makeRoot(d.root); err != nil {
			return nil, fail("create the folder", d.root, err)
		}
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		if info, statErr := os.Stat(d.root); statErr == nil && !info.IsDir() {
			err = errNotFolder // the error of OpenRoot has no errno
		}
		return nil, fail("open the folder", d.root, err)
	}
	return root, nil
}

// openThere is open for operations that do nothing if the folder is missing. It
// returns nil and no error then.
func (d *Destination) openThere() (*os.Root, error) {
	root, err := d.open(false)
	if missing(err) {
		return nil, nil
	}
	return root, err
}

// makeRoot makes a folder and its parents, and syncs each folder that got a new
// entry.
func makeRoot(dir string) error {
	info, err := os.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errNotFolder}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return err
	}
	if err := makeRoot(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	return syncFolder(f)
}

// inFolder makes dir and calls do. It repeats both if another run removes the
// empty folder in between.
func inFolder(root *os.Root, dir string, do func() error) error {
	var err error
	for range attempts {
		if err = makeFolder(root, dir); err == nil {
			err = do()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// makeFolder makes dir and its parents below the root, and syncs each folder
// that got a new entry.
func makeFolder(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	info, err := root.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errNotFolder}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeFolder(root, path.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(root, path.Dir(dir))
}

// prune removes dir and its parents below the root as long as they are empty.
// It ignores errors, because an empty folder that stays does no harm.
func prune(root *os.Root, dir string) {
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		// Remove would also remove a file or a link to a folder, so only a
		// folder is passed to it.
		info, err := root.Lstat(dir)
		if err != nil || !info.IsDir() || root.Remove(dir) != nil {
			return
		}
	}
}

// checkContext returns an error if the context is cancelled. It is called
// before an operation begins.
func checkContext(ctx context.Context, op, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot %s %s: %w", op, name, context.Cause(ctx))
	}
	return nil
}
