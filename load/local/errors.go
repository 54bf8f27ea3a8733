package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/formetl/formetl/load"
)

var (
	errNotOrdinary = errors.New("it is not an ordinary file")
	errLength      = errors.New("the file is shorter or longer than what was written to it")
)

// fail turns an error of the operating system into a *load.Error: load.ErrUnusable or, if the
// device is to blame, load.ErrFailed. ENOSPC is the device's fault even when a file is being
// created. An error that already is a *load.Error, or is of a cancelled context, stays
// unchanged.
func fail(op, path string, err error) error {
	_, told := errors.AsType[*load.Error](err)
	if err == nil || told || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	hint, kind := cause(err)
	return &load.Error{Kind: kind, Op: op, Path: path, Remedy: hint, Err: bare(err)}
}

// failRead turns an error of reading into a *load.Error as fail does, but never into a
// load.ErrUnusable, because the output exists.
func failRead(op, path string, err error) error {
	hint, _ := cause(err)
	return &load.Error{Kind: load.ErrFailed, Op: op, Path: path, Remedy: hint, Err: bare(err)}
}

// cause returns a hint for the user, and the load.Kind of the error: what is to blame.
func cause(err error) (hint string, kind load.Kind) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space on that disk; what was there before is kept", load.ErrFailed
	case errors.Is(err, syscall.EFBIG):
		return "raise the limit on file sizes (ulimit -f, or a quota)", load.ErrFailed
	case errors.Is(err, syscall.EIO):
		return "check the disk; what was there before is kept", load.ErrFailed
	case errors.Is(err, syscall.EROFS):
		return "the disk is mounted read-only; remount it, or choose another path", load.ErrUnusable
	case errors.Is(err, fs.ErrPermission):
		return "give the user who runs formetl the right to write there, or choose another path", load.ErrUnusable
	case errors.Is(err, fs.ErrNotExist):
		return "check the path, and that its disk is mounted", load.ErrUnusable
	case errors.Is(err, syscall.ENOTDIR):
		return "a file lies where a folder is needed; move it away, or choose another path", load.ErrUnusable
	case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return "something else has this name; move it away, or choose another path", load.ErrUnusable
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "choose a shorter path", load.ErrUnusable
	case errors.Is(err, syscall.ELOOP):
		return "links in the path lead in a circle; fix them, or choose another path", load.ErrUnusable
	case errors.Is(err, errNotOrdinary):
		return "move it away, or choose another path", load.ErrUnusable
	case errors.Is(err, errLength):
		return "check the disk, then run again", load.ErrFailed
	}
	if _, system := errors.AsType[syscall.Errno](err); system {
		return "", load.ErrFailed
	}
	// An error of os.Root itself has no errno.
	return "a link in this path leads out of the output's folder; remove it, or choose another path", load.ErrUnusable
}

// bare removes the path from an error, because the message that wraps it names the path too.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// syncDir syncs a folder, which makes its entries durable. It ignores EINVAL
// and ENOTSUP, because some file systems cannot sync a folder. On Windows it
// ignores any error.
func syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || runtime.GOOS == "windows" {
		err = nil
	}
	return errors.Join(err, f.Close())
}
