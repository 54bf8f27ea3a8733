package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/formetl/formetl/load"
)

// Stat describes a file by what the system says of it.
func (d *Destination) Stat(ctx context.Context, name string) (load.Object, error) {
	if err := load.CheckName(name); err != nil {
		return load.Object{}, err
	}
	root, err := d.openThere(ctx, "look at", name)
	if err != nil {
		return load.Object{}, err
	}
	var info os.FileInfo
	if root != nil {
		defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
		info, err = ordinary(root, name, d.path(name))
	}
	switch {
	case err != nil:
		return load.Object{}, err
	case info == nil || info.IsDir():
		return load.Object{}, fmt.Errorf("%s: %w", d.path(name), load.ErrNotExist)
	}
	return load.Object{Name: name, Bytes: info.Size(), Changed: info.ModTime()}, nil
}

// ordinary describes what has a name. It returns nil and no error if nothing does, and an error
// if it is neither a file nor a folder: see load.NotOrdinary. path names the file in errors.
func ordinary(root *os.Root, name, path string) (os.FileInfo, error) {
	info, err := root.Lstat(name)
	switch {
	case missing(err):
		return nil, nil
	case err != nil:
		return nil, fail("look at", path, err)
	}
	return info, load.NotOrdinary(path, info, func() (string, error) { return root.Readlink(name) })
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
