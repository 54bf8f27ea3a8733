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
	return d.replaceable(root, name)
}

func (d *Destination) replaceable(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fail("look at", d.path(name), err)
	}
	return load.NotOrdinary(d.path(name), info, func() (string, error) { return root.Readlink(name) })
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
