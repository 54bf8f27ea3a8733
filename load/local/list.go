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

// List gives the files below a folder. Links to folders are not followed. What
// is removed while it looks is listed or not.
func (d *Destination) List(ctx context.Context, folder string) ([]string, error) {
	if err := load.CheckName(folder); err != nil {
		return nil, err
	}
	if err := checkContext(ctx, "list", folder); err != nil {
		return nil, err
	}
	root, err := d.openThere()
	if root == nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for paths only, nothing to lose
	var names []string
	err = fs.WalkDir(root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case missing(err):
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			return checkContext(ctx, "list", name)
		case entry.Type() == fs.ModeSymlink && !linksFile(root, name):
			return nil
		case name != folder && !isPut(name): // an object is not below itself
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, failRead("list", d.path(folder), err)
	}
	slices.Sort(names) // a walk has "a/b" before "a-b"
	return names, nil
}

// linksFile tells whether a link leads to what Get can read.
func linksFile(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && !info.IsDir()
}

// isPut tells whether a name is that of a file that Put is writing.
func isPut(name string) bool {
	return path.Dir(name) == load.ControlFolder && strings.HasPrefix(path.Base(name), putPrefix)
}
