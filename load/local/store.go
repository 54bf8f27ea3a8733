package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// Get reads an object. The returned version is the SHA-256 of the object's content.
func (d *Destination) Get(ctx context.Context, name string) ([]byte, string, error) {
	file, err := d.Open(ctx, name)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }() // the file is only read
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, "", failRead("read", d.path(name), err)
	}
	digest := sha256.Sum256(data)
	return data, hex.EncodeToString(digest[:]), nil
}

// Put writes an object to a temporary file, syncs the file and renames it. It checks the
// version and writes under the destination's lock, so that the condition also holds between
// processes.
func (d *Destination) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	root, err := d.open(ctx, "write", name, true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the root only resolves paths
	if d.state && version == load.AnyVersion {
		return fail("write", d.path(name), inFolder(root, path.Dir(name), func() error { return root.WriteFile(name, data, d.mode()) }))
	}
	unlock, err := d.lock(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	if version != load.AnyVersion {
		_, current, err := d.Get(ctx, name)
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			return err
		}
		if current != version {
			return fmt.Errorf("cannot write %s: %w", d.path(name), load.ErrConflict)
		}
	}
	return fail("write", d.path(name), d.write(root, name, data))
}

// Open opens the file of a data object for reading.
func (d *Destination) Open(ctx context.Context, name string) (file io.ReadCloser, err error) {
	if err := load.CheckName(name); err != nil {
		return nil, err
	}
	err = d.in(ctx, "read", name, func(root *os.Root) error {
		// A pipe that is opened would wait for a writer that may never come.
		if info, err := root.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return errNotOrdinary
		}
		file, err = root.Open(name)
		return err
	})
	switch {
	case missing(err):
		return nil, fmt.Errorf("cannot read %s: %w", d.path(name), load.ErrNotExist)
	case err != nil:
		return nil, failRead("read", d.path(name), err)
	}
	return file, nil
}

// Stat describes the file of an object by what the system says of the file.
func (d *Destination) Stat(ctx context.Context, name string) (o load.Object, err error) {
	if err := load.CheckName(name); err != nil {
		return o, err
	}
	err = d.in(ctx, "look at", name, func(root *os.Root) error {
		info, err := ordinary(root, name, d.path(name))
		if err == nil && (info == nil || info.IsDir()) {
			err = fs.ErrNotExist
		}
		if err == nil {
			o = load.Object{Name: name, Bytes: info.Size(), Changed: info.ModTime()}
		}
		return err
	})
	if missing(err) {
		err = fmt.Errorf("%s: %w", d.path(name), load.ErrNotExist)
	}
	return o, err
}

// ordinary describes the file or folder of a name. It returns nil and no error if nothing has
// the name, and an error if something else has it: see load.NotOrdinary. path names the file
// in errors.
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

// write replaces the object of that name. Its temporary file lies in the control folder, where
// Clean finds it. The library renameio would put the file beside the data, and does not sync
// the folder.
func (d *Destination) write(root *os.Root, name string, data []byte) error {
	if _, err := ordinary(root, name, d.path(name)); err != nil {
		return err
	}
	temp := load.TemporaryPrefix + rand.Text()
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, d.mode())
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = inFolder(root, path.Dir(name), func() error { return root.Rename(temp, name) })
	}
	if err != nil {
		_ = root.Remove(temp) // the error of writing is returned
		return err
	}
	return syncDir(root, path.Dir(name))
}

// Delete removes an object and the folders that it leaves empty.
func (d *Destination) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	err := d.in(ctx, "remove", name, func(root *os.Root) error {
		if info, err := root.Lstat(name); err != nil || info.IsDir() { // a folder is no object
			return err
		}
		unlock, err := d.lock(ctx, root)
		if err != nil {
			return err
		}
		defer unlock()
		dir := path.Dir(name)
		err = root.Remove(name)
		if err == nil && !d.state {
			err = syncDir(root, dir)
		}
		if err == nil {
			prune(root, dir)
		}
		return err
	})
	return fail("remove", d.path(name), unlessMissing(err))
}

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
