package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/formetl/formetl/load"
)

const (
	lockName  = "lock"  // held while a small object is written
	leaseName = "lease" // held by a run
	// lockRetry is how often a held lock is asked for again. Holders keep it
	// for one small write.
	lockRetry = 2 * time.Millisecond
)

// lock takes the destination's lock for one small write. The function it
// returns gives it back and cleans up.
func (d *Destination) lock(ctx context.Context, root *os.Root) (unlock func(), err error) {
	name := path.Join(load.ControlFolder, lockName)
	held, err := d.hold(root, name, func(f *flock.Flock) (bool, error) {
		return f.TryLockContext(ctx, lockRetry)
	})
	if err != nil {
		return nil, fail("lock", d.path(name), err)
	}
	return func() { release(root, name, held) }, nil
}

// hold locks a file in the control folder. Lock files are removed by those
// who hold them, so a lock counts only if the name still leads to the file
// that was locked. It returns nil without an error where try gives false.
func (d *Destination) hold(root *os.Root, name string, try func(*flock.Flock) (bool, error)) (*flock.Flock, error) {
	var held *flock.Flock
	err := inFolder(root, path.Dir(name), func() error {
		// Through os.Root first: it refuses a control folder that leads away.
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		lock := flock.New(d.path(name), flock.SetFlag(os.O_RDWR))
		ok, err := try(lock)
		if err != nil || !ok {
			return errors.Join(err, lock.Close())
		}
		if !current(root, name, lock) {
			// Its holder removed it meanwhile: to be asked for again.
			return errors.Join(fs.ErrNotExist, lock.Close())
		}
		held = lock
		return nil
	})
	return held, err
}

// current tells whether name still leads to the locked file.
func current(root *os.Root, name string, lock *flock.Flock) bool {
	locked, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := root.Stat(name)
	return err == nil && os.SameFile(locked, named)
}

// release removes a lock file while it is held, so that no two runs hold
// different files of one name, then unlocks. Nothing of it can fail a run:
// the lock ends with the process at the latest.
func release(root *os.Root, name string, lock *flock.Flock) {
	if current(root, name, lock) {
		_ = root.Remove(name)
	}
	_ = lock.Close()
	prune(root, path.Dir(name))
}

// leaseRecord is what a lease file holds, for people and for HeldError.
type leaseRecord struct {
	Scope string `json:"scope,omitempty"`
	load.Holder
}

type lease struct {
	root *os.Root
	name string
	lock *flock.Flock
	once sync.Once
	lost chan struct{}
}

// Acquire takes the lease by a file lock, which ends with its process.
func (d *Destination) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if scope != "" {
		if err := load.CheckObjectName(scope); err != nil {
			return nil, err
		}
	}
	if err := checkContext(ctx, "take the lease of", d.path(scope)); err != nil {
		return nil, err
	}
	root, err := d.open(true)
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat(scope); scope != "" && err == nil && info.IsDir() {
		_ = root.Close() // opened for paths only, nothing to lose
		return nil, fail("create", d.path(scope), syscall.EISDIR)
	}
	name := path.Join(load.ControlFolder, leaseFile(scope))
	held, err := d.hold(root, name, func(f *flock.Flock) (bool, error) { return tryLease(ctx, f) })
	if err == nil && held == nil {
		err = &load.HeldError{Path: d.path(scope), Holder: readLease(root, name).Holder}
	} else if err != nil {
		err = fail("lock", d.path(name), err)
	}
	if err != nil {
		_ = root.Close() // the first error is the one to tell
		return nil, err
	}
	l := &lease{root: root, name: name, lock: held, lost: make(chan struct{})}
	if err := writeHolder(root, name, leaseRecord{Scope: scope, Holder: h}); err != nil {
		_ = l.Release(ctx) // the first error is the one to tell
		return nil, fail("write", d.path(name), err)
	}
	return l, nil
}

// tryLease takes a lease's lock unless another run holds it. A lock that is
// shared is not a run's: somebody asks who holds it (leaseFree), or tries here
// too, and lets go of it at once. So it is tried again. Who shares it for long
// is none of ours, and keeps runs out as a run would.
func tryLease(ctx context.Context, lock *flock.Flock) (bool, error) {
	for range attempts {
		ok, err := lock.TryLock()
		if ok || err != nil {
			return ok, err
		}
		shared, err := lock.TryRLock()
		if err != nil || !shared {
			return false, err
		}
		if err := lock.Unlock(); err != nil {
			return false, err
		}
		pause := time.NewTimer(rand.N(lockRetry))
		select {
		case <-ctx.Done():
			pause.Stop()
			return false, context.Cause(ctx)
		case <-pause.C:
		}
	}
	return false, nil
}

// leaseFree tells whether no run holds a lease, by sharing its lock for a
// moment. The file is not made, and stays.
func (d *Destination) leaseFree(root *os.Root, name string) (bool, error) {
	// Through os.Root first: it refuses a control folder that leads away.
	f, err := root.Open(name)
	if missing(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	lock := flock.New(d.path(name), flock.SetFlag(os.O_RDONLY))
	shared, err := lock.TryRLock()
	err = errors.Join(err, lock.Close())
	if missing(err) {
		return true, nil // released meanwhile
	}
	return shared, err
}

// leaseFile names a scope's lease. A file's own name would end in a data
// extension, so its hash stands for it; the scope is told inside.
func leaseFile(scope string) string {
	if scope == "" {
		return leaseName
	}
	digest := sha256.Sum256([]byte(scope))
	return leaseName + "-" + hex.EncodeToString(digest[:8])
}

// readLease reads who holds a lease; what cannot be read is left empty.
func readLease(root *os.Root, name string) leaseRecord {
	var r leaseRecord
	data, err := root.ReadFile(name)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return leaseRecord{}
	}
	return r
}

// writeHolder writes into the locked file itself: a renamed one would not be
// locked. A reader that meets it half-written learns no name, nothing worse.
func writeHolder(root *os.Root, name string, r leaseRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}

// Lost is never closed: a file lock lives as long as its process.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release removes the lease file and unlocks.
func (l *lease) Release(context.Context) error {
	l.once.Do(func() {
		release(l.root, l.name, l.lock)
		_ = l.root.Close() // opened for paths only, nothing to lose
	})
	return nil
}
