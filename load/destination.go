package load

import (
	"context"
	"errors"
	"io"
	"strings"
)

// SideBySide is how many objects of a destination are handled at once where
// there may be thousands: a store answers each request only after a while.
const SideBySide = 8

// Destination is a folder on disk or a prefix of a bucket. Object names are
// relative to it, slash-separated, and never leave it.
type Destination interface {
	Stager
	Store
}

// Stager writes data objects in two steps: prepare makes an object durable
// and keeps it invisible, commit gives it its final name.
type Stager interface {
	// Stage begins an object. run names the run that stages it; nothing is
	// visible under name until Commit.
	Stage(ctx context.Context, run, name string) (Upload, error)
	// Commit makes a prepared object visible under its final name. It never
	// overwrites unless p.Replace is set, and committing twice is harmless: a
	// final object of the right length and checksum is a success, another one
	// is ErrConflict. A prepared object that is neither staged nor final any
	// more is ErrStagedGone.
	Commit(ctx context.Context, p Prepared) error
	// Abort removes a prepared object that is not to be committed. It is
	// harmless after Commit and when called twice.
	Abort(ctx context.Context, p Prepared) error
	// Check tells whether a prepared object can still be committed: its bytes
	// are staged, with the right length where that can be told, or it is
	// committed already. Otherwise the error wraps ErrStagedGone, or is a
	// *NameError where the destination cannot have made the object; any other
	// error says that nobody could tell. See NotThere.
	Check(ctx context.Context, p Prepared) error
}

// Upload is an object being staged. Exactly one of Prepare and Abort ends it;
// Abort after Prepare is a no-op, so it can be deferred.
type Upload interface {
	io.Writer
	// Prepare makes everything durable and nothing visible.
	Prepare(ctx context.Context) (Prepared, error)
	// Abort drops the object.
	Abort() error
}

// Prepared describes a staged object. It is a plain value that survives in a
// journal, so that another process can commit or abort it after a crash.
type Prepared struct {
	Name    string `json:"name"`              // the final name
	Staged  string `json:"staged"`            // where the bytes lie now: a relative path, or an upload id
	Bytes   int64  `json:"bytes"`             // length
	SHA256  string `json:"sha256"`            // hex, of the bytes
	Replace bool   `json:"replace,omitempty"` // single files: the final name may exist and is replaced in one step
}

// Store keeps small objects: the manifest, _SUCCESS, dead letters, the journal.
type Store interface {
	// Get reads an object and its version, an opaque token for Put.
	// A missing object is ErrNotExist.
	Get(ctx context.Context, name string) (data []byte, version string, err error)
	// Put writes an object whole, atomically. version is AnyVersion, or
	// NoVersion where the object must not exist, or what Get returned;
	// another version is ErrConflict.
	Put(ctx context.Context, name string, data []byte, version string) error
	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, name string) error
	// List gives the objects whose names begin with prefix, sorted by the bytes
	// of their names: "a/b/" gives what lies below the folder a/b, "a/b" also
	// its neighbours a/b.csv and a/bc. Where nothing begins so the list is empty.
	// The control folder is open to it; the temporary files of Put are not listed.
	List(ctx context.Context, prefix string) ([]Object, error)
}

// Object is what a listing tells of an object.
type Object struct {
	Name  string // whole, relative to the destination
	Bytes int64
}

// NamesOf gives the names of objects, in their order.
func NamesOf(objects []Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	return names
}

// CheckPrefix tells whether names may begin with prefix: it is a name, or one
// with a slash behind it. The error is a *NameError.
func CheckPrefix(prefix string) error { return CheckName(strings.TrimSuffix(prefix, "/")) }

// Versions that Put understands besides those of Get.
const (
	AnyVersion = "*"
	NoVersion  = ""
)

// NotThere tells by an error of Commit or Check that a prepared object is not
// there: it is gone, or what describes it was damaged, so that the destination
// cannot have made it.
func NotThere(err error) bool {
	_, damaged := errors.AsType[*NameError](err)
	return damaged || errors.Is(err, ErrStagedGone)
}

// Errors of a Store and of Commit.
var (
	// ErrNotExist is an object that is not there.
	ErrNotExist = errors.New("no such object")
	// ErrConflict is an object that is there with other content or another
	// version than the caller knows (exit 75).
	ErrConflict = errors.New("the object was changed by someone else")
	// ErrStagedGone is a prepared object whose bytes are no longer there: it
	// must be made again.
	ErrStagedGone = errors.New("the staged object is gone")
)
