package local

import (
	"context"
	"errors"
	"os"

	"github.com/formetl/formetl/load"
)

var _ load.Replacer = (*Destination)(nil)

// Replaceable implements load.Replacer.
func (d *Destination) Replaceable(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	root, err := d.openThere(ctx, "look at", name)
	if root == nil {
		return err
	}
	defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
	return replaceable(root, name, d.path(name))
}

// replaceable is Replaceable below an open root. path names the file in errors.
func replaceable(root *os.Root, name, path string) error {
	info, err := root.Lstat(name)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fail("look at", path, err)
	}
	return load.NotOrdinary(path, info, func() (string, error) { return root.Readlink(name) })
}

// errNotReadable is the error of reading what is neither a file nor a link to one. To open a
// pipe would wait for a writer that may never come.
var errNotReadable = errors.New("it is no ordinary file")

// readable returns an error if something lies at a name that cannot be read as a file.
func readable(root *os.Root, name string) error {
	if info, err := root.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return errNotReadable
	}
	return nil
}
