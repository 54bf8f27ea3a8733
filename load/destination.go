package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Destination is a folder on disk or a prefix of a bucket. Object names are
// relative to it, slash-separated, and never leave it.
type Destination interface {
	Stager
	Store
	Opener
	Leaser
	// Holders returns the leases that are held at the destination now. Leases that have expired or
	// whose process is gone are left out. The call does not disturb a run that takes a lease at
	// the same time.
	Holders(ctx context.Context) ([]ScopedHolder, error)
}

// Stager writes data objects in two steps: prepare makes an object durable
// and keeps it invisible, commit gives it its final name.
type Stager interface {
	// Stage begins an object. run names the run that stages it. Nothing is
	// visible under name until Commit.
	Stage(ctx context.Context, run, name string) (Upload, error)
	// Commit makes a prepared object visible under its final name. It never
	// overwrites unless p.Replace is set. It succeeds if the final name already
	// holds an object of this length and checksum. If the name holds another
	// object, the error wraps ErrConflict. If the object is neither staged nor
	// at its final name, it wraps ErrStagedGone.
	Commit(ctx context.Context, p Prepared) error
	// Abort removes a staged object that will not be committed, also while the object is still
	// being staged. Of p, Abort needs Name and Staged. It is harmless after Commit and when called
	// twice, and never removes committed data, whatever p holds.
	Abort(ctx context.Context, p Prepared) error
	// Check returns nil if a prepared object can still be committed or is
	// committed already. It compares lengths if the destination knows them. The
	// error wraps ErrStagedGone if the object is gone, or is an ErrConfig if
	// the destination cannot have made it. Any other error means that the
	// answer is unknown. See NotThere.
	Check(ctx context.Context, p Prepared) error
	// Staged returns the objects that were staged and neither committed nor aborted, also
	// those of runs that are alive.
	Staged(ctx context.Context) ([]Leftover, error)
}

// Upload is an object that is being staged. Prepare or Abort ends it. Abort
// after Prepare does nothing, so it can be deferred.
type Upload interface {
	io.Writer
	// Prepare makes all bytes of the object durable. The object stays invisible until
	// Stager.Commit.
	Prepare(ctx context.Context) (Prepared, error)
	// Abort removes the object that is being staged. After Prepare it does nothing.
	Abort() error
}

// Prepared describes a staged object. It is a plain value that survives in the
// record of a commit, so that another process can commit or abort it after a crash.
type Prepared struct {
	Name    string `json:"name"`              // the object's final name
	Staged  string `json:"staged"`            // the destination's own reference to the staged bytes
	Bytes   int64  `json:"bytes"`             // the object's length
	SHA256  string `json:"sha256"`            // of the object's bytes, in hex
	Replace bool   `json:"replace,omitempty"` // single files: the final name may exist and is replaced in one step
}

// Opener reads data objects piece by piece, because they may be larger than memory.
type Opener interface {
	// Open reads a committed object from its beginning. The caller closes it. If the
	// object is missing, the error wraps ErrNotExist.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

// Digest reads a data object, and returns its length in bytes and its SHA-256 in hex. If the
// object is missing, the error wraps ErrNotExist.
func Digest(ctx context.Context, d Opener, name string) (bytes int64, digest string, err error) {
	object, err := d.Open(ctx, name)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = object.Close() }() // the object is only read: an error loses nothing
	sum := sha256.New()
	if bytes, err = io.Copy(sum, object); err != nil {
		return 0, "", fmt.Errorf("%s: %w", name, err)
	}
	return bytes, hex.EncodeToString(sum.Sum(nil)), nil
}

// Store keeps small objects: the manifest, _SUCCESS, dead letters, checkpoints.
type Store interface {
	fmt.Stringer // String returns the address of what keeps them, for people
	// Get reads an object and its version, an opaque token for Put. If the
	// object is missing, the error wraps ErrNotExist.
	Get(ctx context.Context, name string) (data []byte, version string, err error)
	// Put writes an object whole, atomically. version is AnyVersion, or
	// NoVersion if no object may exist, or what Get returned. If the object has
	// another version, the error wraps ErrConflict.
	Put(ctx context.Context, name string, data []byte, version string) error
	// Delete removes an object. It is no error if the object is missing.
	Delete(ctx context.Context, name string) error
	// List gives the objects whose names begin with prefix, sorted by the bytes
	// of their names. "a/b/" gives what lies below the folder a/b; "a/b" also
	// gives a/b.csv and a/bc. The list may be empty. What lies in the control
	// folder is listed too.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Stat describes an object. If the object is missing, the error wraps ErrNotExist. If
	// something else has its name, as a device has in a folder, it is an ErrUnusable: see
	// NotOrdinary.
	Stat(ctx context.Context, name string) (Object, error)
}

// Object describes an object of a Store.
type Object struct {
	Name    string // the object's whole name, relative to the destination
	Bytes   int64
	Changed time.Time // when the object was written, by the store's clock; zero if unknown
	// Marked tells that formetl wrote the object. Only Stat sets it, and only where objects tell
	// who wrote them, as in a bucket.
	Marked bool
}

// NamesOf gives the names of objects, in the same order.
func NamesOf(objects []Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	return names
}

// CheckPrefix checks a prefix for List: it must be a valid name, or a valid
// name followed by a slash. The error is an ErrConfig.
func CheckPrefix(prefix string) error { return CheckName(strings.TrimSuffix(prefix, "/")) }

// Versions for Put: AnyVersion means any or no object, and NoVersion means no object.
const (
	AnyVersion = "*"
	NoVersion  = ""
)

// NotThere tells whether an error of Commit or Check means that a prepared
// object does not exist: it is gone, or its description was damaged.
func NotThere(err error) bool {
	return errors.Is(err, ErrConfig) || errors.Is(err, ErrStagedGone)
}

// Errors of a Store and of Commit.
var (
	// ErrNotExist means that the store has no object of the name.
	ErrNotExist = errors.New("it does not exist")
	// ErrConflict means that the object has other content or another version
	// than the caller expects (exit 75).
	ErrConflict error = passing("another program changed it meanwhile")
	// ErrStagedGone means that the bytes of a prepared object are gone. The object must be staged
	// again.
	ErrStagedGone error = passing("what the run had prepared for it is gone or was changed")
)

// passing is an error that may be gone when the command is run again.
type passing string

func (e passing) Error() string { return string(e) }

// ExitCode is 75: the object was changed or is gone, and the same command may succeed later.
func (e passing) ExitCode() int { return 75 }
