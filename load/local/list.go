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

// List returns the files whose names begin with prefix. Links to folders are not
// followed. A file that is removed during the call may or may not be listed.
func (d *Destination) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = d.in(ctx, "list", prefix, func(root *os.Root) error {
		top := path.Dir(prefix)
		return fs.WalkDir(root.FS(), top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case missing(err):
				return nil
			case err != nil:
				return err
			case entry.IsDir() && name != top && !strings.HasPrefix(name, prefix):
				return fs.SkipDir
			case entry.IsDir():
				return checkContext(ctx, "list", name)
			case !strings.HasPrefix(name, prefix):
				return nil
			}
			info, err := root.Stat(name)
			switch link := entry.Type() == fs.ModeSymlink; {
			case err == nil && !info.IsDir():
				objects = append(objects, load.Object{Name: name, Bytes: info.Size(), Changed: info.ModTime()})
			case err == nil, link, missing(err):
				return nil // the file is gone, or is a link that Get cannot read
			}
			return err
		})
	})
	if unlessMissing(err) != nil {
		return nil, failRead("list", d.path(prefix), err)
	}
	// A walk of folders gives "a/b" before "a-b", which is not the order of their bytes.
	slices.SortFunc(objects, func(a, b load.Object) int { return strings.Compare(a.Name, b.Name) })
	return objects, nil
}

// Staged returns the staged files of all runs.
func (d *Destination) Staged(ctx context.Context) ([]load.Leftover, error) {
	objects, err := d.List(ctx, load.ControlFolder+"/")
	var found []load.Leftover
	for _, o := range objects {
		if run, id, ok := load.ParseStagedName(o.Name); ok {
			found = append(found, load.Leftover{
				Kind: load.StagedFile, Run: run, Path: d.path(o.Name), Bytes: o.Bytes, Since: o.Changed, Name: stagedFor(id), Staged: o.Name,
			})
		}
	}
	return found, err
}
