package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/formetl/formetl/load"
)

// Commit renames a staged file to its final name. Folders that are missing are made with mode
// 0750 and synced.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	if err := checkPrepared(p); err != nil {
		return err
	}
	err := d.in(ctx, "create", p.Name, func(root *os.Root) error {
		dir := path.Dir(p.Name)
		info, err := root.Lstat(p.Staged)
		if err == nil && info.Size() != p.Bytes {
			return fail("use", d.path(p.Staged), errLength)
		}
		if err == nil {
			if err = inFolder(root, dir, func() error { return d.publish(ctx, root, p) }); err != nil {
				prune(root, dir) // the folder may have been made in vain
			}
		}
		// Another run made the same part or committed this part, or the name belongs to someone
		// else.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) && !p.Replace {
			err = d.committed(ctx, p)
		}
		if err == nil {
			err = syncDir(root, dir)
		}
		if err != nil {
			return fail("create", d.path(p.Name), err)
		}
		return removeStaged(root, p.Staged, d.path(p.Staged))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot create %s: the folder %s was removed meanwhile: %w", p.Name, d.root, load.ErrStagedGone)
	}
	return err
}

// committed returns nil if the final name holds exactly what was prepared. Otherwise the
// error wraps load.ErrStagedGone or load.ErrConflict, or says why the file cannot be read.
func (d *Destination) committed(ctx context.Context, p load.Prepared) error {
	same, err := d.holds(ctx, p.Name, p)
	switch {
	case errors.Is(err, load.ErrNotExist):
		return fmt.Errorf("cannot create %s: %w", d.path(p.Name), load.ErrStagedGone)
	case err != nil:
		return fail("create", d.path(p.Name), err)
	case same:
		return nil
	case p.Replace:
		// It is no conflict that the name is taken: a file of that name was to be replaced. The
		// staged file that should replace it is gone.
		return fmt.Errorf("cannot replace %s: %w", d.path(p.Name), load.ErrStagedGone)
	}
	return fmt.Errorf("cannot create %s: another file with this name exists, which formetl does not overwrite: %w", d.path(p.Name), load.ErrConflict)
}

// publish gives the staged file its final name. With p.Replace it replaces a file of that
// name. Otherwise the name must be free: everything that formetl writes there holds the
// destination's lock meanwhile. A hard link would need no lock, but not all file systems have
// them.
func (d *Destination) publish(ctx context.Context, root *os.Root, p load.Prepared) error {
	if p.Replace {
		if _, err := ordinary(root, p.Name, d.path(p.Name)); err != nil {
			return err
		}
		return root.Rename(p.Staged, p.Name)
	}
	unlock, err := d.lock(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := root.Lstat(p.Name); err == nil {
		return &fs.PathError{Op: "rename", Path: p.Name, Err: fs.ErrExist}
	}
	return root.Rename(p.Staged, p.Name)
}

// Check returns nil if the staged file, or the file of the final name, has the right length
// and content. If neither has, the error wraps load.ErrStagedGone.
func (d *Destination) Check(ctx context.Context, p load.Prepared) error {
	if err := checkPrepared(p); err != nil {
		return err
	}
	same, err := d.holds(ctx, p.Staged, p)
	if same || err != nil && !errors.Is(err, load.ErrNotExist) {
		return err
	}
	err = d.committed(ctx, p)
	if errors.Is(err, load.ErrConflict) { // another file has the name, which matters only to Commit
		return fmt.Errorf("cannot create %s: %w", d.path(p.Name), load.ErrStagedGone)
	}
	return err
}
