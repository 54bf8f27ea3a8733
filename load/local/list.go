package local

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// List gives the files whose names begin with prefix. Links to folders are not
// followed. A file that is removed during the call may or may not be listed.
func (d *Destination) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := checkContext(ctx, "list", prefix); err != nil {
		return nil, err
	}
	root, err := d.openThere()
	if root == nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
	l := listing{root: root}
	if err := l.begin(ctx, prefix); err != nil {
		return nil, failRead("list", d.path(prefix), err)
	}
	// A walk gives "a/b" before "a-b", which is not the order of their bytes.
	slices.SortFunc(l.objects, func(a, b load.Object) int { return strings.Compare(a.Name, b.Name) })
	return l.objects, nil
}

// listing collects the files that a walk finds.
type listing struct {
	root    *os.Root
	objects []load.Object
}

// begin adds the files at and below those entries of one folder whose names
// begin with the last element of prefix.
func (l *listing) begin(ctx context.Context, prefix string) error {
	folder, start := path.Split(prefix)
	entries, err := fs.ReadDir(l.root.FS(), path.Clean(folder))
	if missing(err) {
		return nil
	}
	for _, e := range entries {
		if err != nil {
			break
		}
		switch name := path.Join(folder, e.Name()); {
		case !strings.HasPrefix(e.Name(), start):
		case e.IsDir():
			err = l.walk(ctx, name)
		default:
			err = l.add(name, e)
		}
	}
	return err
}

// walk adds the files below a folder.
func (l *listing) walk(ctx context.Context, folder string) error {
	return fs.WalkDir(l.root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case missing(err):
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			return checkContext(ctx, "list", name)
		}
		return l.add(name, entry)
	})
}

// add adds a file, unless it is a temporary file of Put or a link that Get
// cannot read.
func (l *listing) add(name string, entry fs.DirEntry) error {
	if isPut(name) {
		return nil
	}
	info, err := entry.Info()
	if entry.Type() == fs.ModeSymlink {
		info, err = l.root.Stat(name)
		if err != nil || info.IsDir() {
			return nil //nolint:nilerr // it is no object
		}
	}
	switch {
	case missing(err):
		return nil
	case err != nil:
		return err
	}
	l.objects = append(l.objects, load.Object{Name: name, Bytes: info.Size()})
	return nil
}

// isPut tells whether a name is that of a temporary file of Put.
func isPut(name string) bool {
	return path.Dir(name) == load.ControlFolder && strings.HasPrefix(path.Base(name), putPrefix)
}
