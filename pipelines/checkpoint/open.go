package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/formetl/formetl/load"
)

// folderName is the folder that holds all checkpoints, in the state folder or
// in the control folder of an output.
const folderName = "checkpoint"

// Key returns the name of a form's checkpoint. It is equal for all runs of one
// pipeline that write the same outputs. paths are the output paths in the definition.
func Key(pipeline, form string, paths []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", pipeline, form, paths))
	return hex.EncodeToString(sum[:])[:24]
}

// FolderError reports that the state folder cannot be read or written.
type FolderError struct {
	Folder string
	Err    error
}

// Error names the folder and what to do.
func (e *FolderError) Error() string {
	first := "free space"
	switch {
	case errors.Is(e.Err, fs.ErrPermission), errors.Is(e.Err, syscall.EROFS):
		first = "let this user write there"
	case errors.Is(e.Err, fs.ErrNotExist), errors.Is(e.Err, fs.ErrExist), errors.Is(e.Err, syscall.ENOTDIR):
		first = "no folder can be made there: look what is in its way"
	}
	return fmt.Sprintf("cannot keep results in %s: %v; %s, or choose another folder with --state", e.Folder, e.Err, first)
}

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// Open opens and locks the checkpoint of a key in a state folder. slots is how
// many runs may have a checkpoint of this key at a time; Open takes the first
// free one. If there is none, it returns a *load.HeldError.
func Open(ctx context.Context, state, key string, slots int) (*Checkpoint, error) {
	Sweep(state, false)
	_, there := os.Stat(state)
	for slot := range slots {
		at := filepath.Join(parentOf(state), key)
		if slot > 0 {
			at += fmt.Sprintf("-%d", slot)
		}
		l, err := acquire(ctx, at, patience/time.Duration(slots))
		if err != nil {
			return nil, &FolderError{Folder: at, Err: err}
		}
		if l != nil {
			l.made = errors.Is(there, fs.ErrNotExist)
			return &Checkpoint{Pace: localPace, Place: at, store: folder(at), lock: l}, nil
		}
	}
	return nil, &load.HeldError{Path: filepath.Join(parentOf(state), key)}
}

// lockFolder opens a checkpoint that a run left. It returns nil if a run holds it.
func lockFolder(at string) (*Checkpoint, error) {
	l, err := acquire(context.Background(), at, 0)
	if l == nil || err != nil {
		return nil, err
	}
	return &Checkpoint{Place: at, store: folder(at), lock: l}, nil
}

// isHeld tells whether a run holds the checkpoint in a folder.
func isHeld(at string) bool {
	file, free, err := tryLock(at)
	defer func() { _ = file.Close() }() // no data can be lost
	return err == nil && !free
}

// tryLock tries to lock the folder of a run, without making a lock file. The
// caller closes the file, which ends the lock.
func tryLock(at string) (file *flock.Flock, free bool, err error) {
	file = flock.New(filepath.Join(at, lockName), flock.SetFlag(os.O_RDWR))
	free, err = file.TryLock()
	return file, free, err
}

// OpenAt opens the checkpoint of a key in the control folder of the output at
// place. The caller holds its lease. held fails once the lease is lost, and
// then nothing is written or removed.
func OpenAt(store load.Store, place, key string, held func() error) *Checkpoint {
	at := path.Join(load.ControlFolder, folderName, key)
	return &Checkpoint{
		Pace: remotePace, Place: strings.TrimSuffix(place, "/") + "/" + at,
		store: objects{store: store, prefix: at + "/", held: held},
	}
}

func parentOf(state string) string { return filepath.Join(state, folderName) }

// lock is the lock of this process on a checkpoint in the state folder.
type lock struct {
	folder string
	file   *flock.Flock
	made   bool // the state folder did not exist before
}

const (
	// tries limits how often acquire makes a folder. Another run that ends may
	// remove the folder before it is locked.
	tries = 100
	// patience is how long to wait for a lock. A process that only checks
	// whether a checkpoint is held has the lock for an instant.
	patience = time.Second
	pause    = 10 * time.Millisecond // between two tries
)

// acquire makes a folder and locks it. It returns nil if another process holds it.
func acquire(ctx context.Context, folder string, patience time.Duration) (l *lock, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var barred error // why the folder could not be made at the last try
	for range tries {
		if err = os.MkdirAll(filepath.Dir(filepath.Dir(folder)), 0o750); err == nil {
			err = os.MkdirAll(folder, 0o700)
		}
		// If another process removes the folder meanwhile, the error may be ErrExist.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		barred = err
		file := flock.New(filepath.Join(folder, lockName), flock.SetPermissions(0o600))
		free, err := file.TryLock()
		if err == nil && !free {
			free, err = file.TryLockContext(ctx, pause)
		}
		if free && isCurrent(file) {
			return &lock{folder: folder, file: file}, nil
		}
		_ = file.Close() // another process has the lock, or removed the file meanwhile
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return nil, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if barred != nil {
		return nil, barred
	}
	return nil, errors.New("other processes remove it again and again")
}

// isCurrent tells whether a locked file is still the file with its name.
func isCurrent(file *flock.Flock) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(file.Path())
	return err == nil && os.SameFile(mine, now)
}

// release unlocks the folder. If the folder is empty, it first removes it, and
// also the folders above if nobody else uses them.
func (l *lock) release() error {
	entries, err := os.ReadDir(l.folder)
	if err == nil && len(entries) == 1 { // only the lock file
		_ = os.Remove(l.file.Path())
		_ = os.Remove(l.folder)
		parent := filepath.Dir(l.folder)
		if os.Remove(parent) == nil && l.made {
			_ = os.Remove(filepath.Dir(parent)) // fails if it is not empty
		}
	}
	return l.file.Close()
}
