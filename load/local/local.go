package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/formetl/formetl/load"
)

const (
	folderMode = 0o750
	// attempts is how often a step is tried if someone else removes the empty
	// folder that it is about to use.
	attempts = 100
)

// Destination is a folder. Its methods are safe for concurrent use, also by
// several Destinations and several processes.
type Destination struct {
	root  string        // absolute path of the folder
	turn  chan struct{} // full while one goroutine of this Destination has the lock or waits for it
	state bool          // the destination is one for state, see NewState
}

var _ load.Destination = (*Destination)(nil)

// New returns the destination at the folder root. New touches nothing on disk: the first write
// makes the folder.
func New(root string) (*Destination, error) {
	if root == "" {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: `""`, Remedy: "give a folder", Err: errors.New("the path is empty")}
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: root, Remedy: "give an absolute path", Err: err}
	}
	return &Destination{root: abs, turn: make(chan struct{}, 1)}, nil
}

// NewState returns the destination for what runs keep from one run to the next. Only its owner
// can read the files. An object that is written with AnyVersion is neither written in one step
// nor synced: the system's cache keeps what a killed process wrote, and readers check it.
func NewState(root string) (*Destination, error) {
	d, err := New(root)
	if err == nil {
		d.state = true
	}
	return d, err
}

// mode returns the permissions of new files.
func (d *Destination) mode() os.FileMode {
	if d.state {
		return 0o600
	}
	return 0o640
}

// String returns the absolute path of the destination's folder.
func (d *Destination) String() string { return d.root }

// path gives the operating system's path of an object, for messages.
func (d *Destination) path(name string) string {
	return filepath.Join(d.root, filepath.FromSlash(name))
}

// open opens the destination's folder, the root, for an operation op on the object name,
// unless ctx is cancelled. If create is set, it makes a root that is missing. Each operation
// opens the root anew. So a Destination needs no Close, and always uses the folder that has
// the root's name now.
func (d *Destination) open(ctx context.Context, op, name string, create bool) (*os.Root, error) {
	if err := checkContext(ctx, op, name); err != nil {
		return nil, err
	}
	root, err := openFolder(d.root)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := makeRoot(d.root); err != nil {
			return nil, fail("create the folder", d.root, err)
		}
		root, err = openFolder(d.root)
	}
	return root, fail("open the folder", d.root, err)
}

// openFolder opens a folder as os.OpenRoot does. If something else than a folder has the path,
// the error is ENOTDIR, where os.OpenRoot has only a text of its own.
func openFolder(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if info, there := os.Stat(dir); err != nil && there == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	return root, err
}

// in calls do with the destination's folder, the root, for an operation op on the object name.
// If the root is missing, the function missing returns true for the error.
func (d *Destination) in(ctx context.Context, op, name string, do func(root *os.Root) error) error {
	root, err := d.open(ctx, op, name, false)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the root only resolves paths
	return do(root)
}

// unlessMissing returns nil if err says that there is no such file, and else err.
func unlessMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

// missing tells whether an error means that there is no such file. It is also
// true if a file lies where the path needs a folder.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// makeRoot makes a folder and its parents, beginning at the nearest parent that
// exists.
func makeRoot(dir string) error {
	there, below := dir, "."
	for _, err := os.Stat(there); errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there); _, err = os.Stat(there) {
		there, below = filepath.Dir(there), path.Join(filepath.Base(there), below)
	}
	root, err := openFolder(there)
	if err != nil {
		return err
	}
	return errors.Join(makeFolder(root, below), root.Close())
}

// inFolder calls do, which writes to the folder dir. If dir is missing, inFolder makes it and
// calls do again. It repeats both if another run removes the empty folder in between.
func inFolder(root *os.Root, dir string, do func() error) error {
	var err error
	for range attempts {
		if err = do(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made := makeFolder(root, dir)
		switch {
		case errors.Is(made, fs.ErrExist): // it vanished again, or is no folder
			err = made
		case made != nil && !errors.Is(made, fs.ErrNotExist):
			return made
		}
	}
	return err
}

// makeFolder makes dir and its parents below the root, and syncs the folders that may have
// got a new entry.
func makeFolder(root *os.Root, dir string) error {
	err := root.MkdirAll(dir, folderMode)
	for ; err == nil && dir != "."; dir = path.Dir(dir) {
		err = syncDir(root, path.Dir(dir))
	}
	return err
}

// prune removes the folder dir and its parents below the root as long as they are empty. It
// ignores errors, because an empty folder that stays does no harm.
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

// checkContext returns an error if the context is cancelled.
func checkContext(ctx context.Context, op, name string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot %s %s: %w", op, name, context.Cause(ctx))
	}
	return nil
}
