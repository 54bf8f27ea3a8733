package local

import (
	"context"
	"io/fs"
	"path"

	"github.com/formetl/formetl/load"
)

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

// Holders returns the leases whose locks are held. It does not disturb a run
// that takes a lease at the same time; see tryLease.
func (d *Destination) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	root, err := d.openThere(ctx, "list", load.ControlFolder)
	if root == nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
	entries, err := fs.ReadDir(root.FS(), load.ControlFolder)
	if err != nil && !missing(err) {
		return nil, failRead("list", d.path(load.ControlFolder), err)
	}
	var held []load.ScopedHolder
	for _, entry := range entries {
		name := path.Join(load.ControlFolder, entry.Name())
		if entry.IsDir() || !load.IsScopeName(name, load.LeaseName) {
			continue
		}
		free, err := d.leaseFree(root, name)
		if err != nil {
			return nil, failRead("ask for the lock of", d.path(name), err)
		}
		if !free {
			held = append(held, readLease(root, name))
		}
	}
	return held, nil
}
