package local

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

// probeTime is how long a probe may take. It is a leftover after that.
const probeTime = time.Minute

// Leftovers returns the staged files of all runs, Put's temporary files, and probes of
// processes that were killed.
func (d *Destination) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	root, err := d.openThere(ctx, "list", load.ControlFolder)
	if root == nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
	var found []load.Leftover
	err = fs.WalkDir(root.FS(), load.ControlFolder, func(name string, entry fs.DirEntry, err error) error {
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if strings.Count(name, "/") > 1 { // staged files lie directly in a run's folder
				return fs.SkipDir
			}
			return checkContext(ctx, "list", name)
		}
		run, staged := stagedRun(name)
		if !staged && !isPut(name) && !load.IsProbe(name) {
			return nil
		}
		info, err := entry.Info()
		if missing(err) {
			return nil // it was committed or removed meanwhile
		}
		if err != nil {
			return err
		}
		if load.IsProbe(name) && time.Since(info.ModTime()) < probeTime {
			return nil
		}
		l := load.Leftover{Kind: load.Temporary, Path: d.path(name), Bytes: info.Size(), Since: info.ModTime(), Ref: name}
		if staged {
			l.Kind, l.Run, l.Name = load.StagedFile, run, stagedFor(path.Base(name))
		}
		found = append(found, l)
		return nil
	})
	if err != nil {
		return nil, failRead("list", d.path(load.ControlFolder), err)
	}
	return found, nil
}

// Remove removes a staged file, a temporary file of Put or a probe.
func (d *Destination) Remove(ctx context.Context, l load.Leftover) error {
	if err := load.CheckName(l.Ref); err != nil {
		return err
	}
	_, staged := stagedRun(l.Ref)
	if !staged && !isPut(l.Ref) && !load.IsProbe(l.Ref) {
		return &load.NameError{Name: l.Ref, Problem: "it is no leftover of a local destination"}
	}
	root, err := d.openThere(ctx, "remove", l.Ref)
	if root == nil {
		return err
	}
	defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
	if !staged {
		// Put holds the lock while it writes a temporary file. So a temporary
		// file that is there while this call holds the lock was left by a dead
		// process.
		if _, err := root.Lstat(l.Ref); missing(err) {
			return nil
		}
		unlock, err := d.lock(ctx, root)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return removeStaged(root, l.Ref, d.path(l.Ref))
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
