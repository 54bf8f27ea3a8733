package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/formetl/formetl/load"
)

const (
	lockName = "lock" // a file that is locked while a small object is written
	// lockRetry is the pause before the next attempt to take a lock. Its holder
	// keeps it for one small write.
	lockRetry = 2 * time.Millisecond
	// leaseWait is how long a run tries to take a lease before it says that another one holds it.
	leaseWait = 300 * time.Millisecond
)

// lock takes the destination's lock for one small write. The caller must call unlock. Only one
// goroutine at a time tries to lock: each holder removes the lock file, so that all goroutines
// that wait for it would have to start over.
func (d *Destination) lock(ctx context.Context, root *os.Root) (unlock func(), err error) {
	name := path.Join(load.ControlFolder, lockName)
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fail("lock", d.path(name), context.Cause(ctx))
	}
	held, err := d.hold(ctx, root, name)
	if err != nil {
		<-d.turn
		return nil, fail("lock", d.path(name), err)
	}
	return func() {
		release(root, name, held)
		<-d.turn
	}, nil
}

// hold locks the file of that name, and waits for the lock as long as ctx lasts. Holders
// remove their lock file, so a lock is valid only if the name still leads to the locked file.
func (d *Destination) hold(ctx context.Context, root *os.Root, name string) (held *flock.Flock, err error) {
	err = inFolder(root, path.Dir(name), func() error {
		// os.Root refuses a control folder that is a link out of the destination.
		// The lock library would follow the link.
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, d.mode())
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		lock := flock.New(d.path(name), flock.SetFlag(os.O_RDWR))
		locked, err := lock.TryLock() // tried also if a slow device has used up ctx's time
		if !locked && err == nil {
			_, err = lock.TryLockContext(ctx, lockRetry)
		}
		if err != nil {
			return errors.Join(err, lock.Close())
		}
		if !current(root, name, lock) {
			// The holder removed the file meanwhile, so hold tries again.
			return errors.Join(fs.ErrNotExist, lock.Close())
		}
		held = lock
		return nil
	})
	return held, err
}

// current tells whether name still leads to the locked file.
func current(root *os.Root, name string, lock *flock.Flock) bool {
	locked, closed := lock.Stat()
	named, missing := root.Stat(name)
	return closed == nil && missing == nil && os.SameFile(locked, named)
}

// release removes a lock file and then unlocks it. In this order no two runs
// can hold different files of the same name. Errors are ignored, because the
// lock ends with the process anyway.
func release(root *os.Root, name string, lock *flock.Flock) {
	if current(root, name, lock) {
		_ = root.Remove(name)
	}
	_ = lock.Close()
	prune(root, path.Dir(name))
}

type lease struct {
	root *os.Root
	name string
	lock *flock.Flock
	once sync.Once
}

// Acquire takes the lease by locking its file. The lock ends with the process.
func (d *Destination) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if scope != "" {
		if err := load.CheckObjectName(scope); err != nil {
			return nil, err
		}
	}
	root, err := d.open(ctx, "lock", d.path(scope), true)
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat(scope); scope != "" && err == nil && info.IsDir() {
		_ = root.Close() // the root only resolves paths: an error of Close loses nothing
		return nil, fail("create", d.path(scope), syscall.EISDIR)
	}
	name := load.ScopeName(load.LeaseName, scope)
	// A look at whether a lease is held locks its file for a moment, so one attempt is not enough.
	while, cancel := context.WithTimeout(ctx, leaseWait)
	defer cancel()
	held, err := d.hold(while, root, name)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		err = &load.HeldError{Path: d.path(scope), Holder: readLease(root, name).Holder}
	case err != nil:
		err = fail("lock", d.path(scope), err)
	}
	if err != nil {
		_ = root.Close() // the first error is returned
		return nil, err
	}
	l := &lease{root: root, name: name, lock: held}
	// The holder is written into the locked file itself, because a renamed file would not be
	// locked. A reader may find it incomplete and then does not know the holder's name.
	data, err := json.Marshal(load.ScopedHolder{Scope: scope, Holder: h})
	if err == nil {
		err = root.WriteFile(name, append(data, '\n'), 0)
	}
	if err != nil {
		_ = l.Release(ctx) // the first error is returned
		return nil, fail("write", d.path(name), err)
	}
	return l, nil
}

// Holders returns the leases whose locks are held. It does not disturb a run
// that takes a lease at the same time: Acquire waits for leaseWait.
func (d *Destination) Holders(ctx context.Context) (held []load.ScopedHolder, err error) {
	err = d.in(ctx, "list", load.ControlFolder, func(root *os.Root) error {
		entries, err := fs.ReadDir(root.FS(), load.ControlFolder)
		for _, entry := range entries {
			name := path.Join(load.ControlFolder, entry.Name())
			if entry.IsDir() || !load.IsScopeName(name, load.LeaseName) {
				continue
			}
			free, err := d.leaseFree(name)
			if err != nil {
				return err
			}
			if !free {
				h := readLease(root, name)
				if name != load.ScopeName(load.LeaseName, h.Scope) { // the file holds no holder yet
					h.Scope = "unknown"
				}
				held = append(held, h)
			}
		}
		return err
	})
	if unlessMissing(err) != nil {
		return nil, failRead("look for leases in", d.path(load.ControlFolder), err)
	}
	return held, nil
}

// leaseFree tells whether no run holds a lease, by taking a shared lock on its file for a
// moment. It neither makes nor removes the file.
func (d *Destination) leaseFree(name string) (bool, error) {
	lock := flock.New(d.path(name), flock.SetFlag(os.O_RDONLY))
	shared, err := lock.TryRLock()
	if err = errors.Join(err, lock.Close()); missing(err) {
		return true, nil // the lease was released meanwhile
	}
	return shared, err
}

// readLease reads the holder from a lease file, for messages only. It returns
// the zero value if the file cannot be read.
func readLease(root *os.Root, name string) load.ScopedHolder {
	var h load.ScopedHolder
	data, err := root.ReadFile(name)
	if err != nil || json.Unmarshal(data, &h) != nil {
		return load.ScopedHolder{}
	}
	return h
}

// Lost gives the nil channel, which never delivers: a file lock lasts as long as
// its process.
func (l *lease) Lost() <-chan struct{} { return nil }

// Release removes the lease file and unlocks it.
func (l *lease) Release(context.Context) error {
	l.once.Do(func() {
		release(l.root, l.name, l.lock)
		_ = l.root.Close() // the root only resolves paths: an error of Close loses nothing
	})
	return nil
}
