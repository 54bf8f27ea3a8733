package local

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"

	"github.com/formetl/formetl/load"
)

// bufferSize is how many bytes an upload buffers before it hashes and writes them to its file.
const bufferSize = 64 << 10

// upload is a staged file that is being written. One goroutine uses it.
type upload struct {
	d      *Destination
	root   *os.Root
	file   *os.File
	buffer *bufio.Writer
	hash   hash.Hash
	bytes  int64  // number of bytes passed to Write
	name   string // final name of the object
	staged string // path of the staged file, below the root
	ended  bool
}

// Stage creates the staged file of an object under .formetl/<run>/.
func (d *Destination) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if err := load.CheckObjectName(name); err != nil {
		return nil, err
	}
	if err := load.CheckRun(run); err != nil {
		return nil, err
	}
	root, err := d.open(ctx, "stage", name, true)
	if err != nil {
		return nil, err
	}
	u := &upload{d: d, root: root, name: name, hash: sha256.New()}
	u.staged = stagedName(run, name)
	err = inFolder(root, path.Dir(u.staged), func() error {
		var err error
		u.file, err = root.OpenFile(u.staged, os.O_WRONLY|os.O_CREATE|os.O_EXCL, d.mode())
		return err
	})
	if err != nil {
		_ = root.Close() // the error of making the file is returned, not that of Close
		return nil, fail("create", d.path(u.staged), err)
	}
	u.buffer = bufio.NewWriterSize(io.MultiWriter(u.file, u.hash), bufferSize)
	return u, nil
}

// Write appends to the staged file. After an error every later call returns that error.
func (u *upload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, fmt.Errorf("cannot write to %s: the upload has ended", u.name)
	}
	n, err := u.buffer.Write(p)
	u.bytes += int64(n)
	return n, fail("write", u.d.path(u.name), err)
}

// Prepare writes what is buffered to the staged file, syncs and closes the file, checks its
// length, and syncs its folder.
func (u *upload) Prepare(ctx context.Context) (load.Prepared, error) {
	if u.ended {
		return load.Prepared{}, fmt.Errorf("cannot prepare %s: the upload has ended", u.name)
	}
	if err := checkContext(ctx, "prepare", u.name); err != nil {
		return load.Prepared{}, err
	}
	if err := u.finish(); err != nil {
		_ = u.Abort() // the error of writing is returned, not that of Abort
		return load.Prepared{}, fail("write", u.d.path(u.name), err)
	}
	u.ended = true
	if err := u.root.Close(); err != nil {
		return load.Prepared{}, fail("close", u.d.root, err)
	}
	return load.Prepared{
		Name: u.name, Staged: u.staged, Bytes: u.bytes,
		SHA256: hex.EncodeToString(u.hash.Sum(nil)),
	}, nil
}

func (u *upload) finish() error {
	if err := u.buffer.Flush(); err != nil {
		return err
	}
	if err := u.file.Sync(); err != nil {
		return err
	}
	info, err := u.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != u.bytes {
		return errLength
	}
	if err := u.file.Close(); err != nil {
		return err
	}
	return syncDir(u.root, path.Dir(u.staged))
}

// Abort removes the staged file and ends the upload. After Prepare it does nothing.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended = true
	defer func() { _ = u.root.Close() }() // the root only resolves paths
	_ = u.file.Close()                    // the file is removed, so its content does not matter
	return removeStaged(u.root, u.staged, u.d.path(u.staged))
}

// Abort removes a staged file, even if ctx is cancelled. It is no error if the
// file is gone.
func (d *Destination) Abort(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p.Staged); err != nil {
		return err
	}
	return unlessMissing(d.in(context.WithoutCancel(ctx), "abort", p.Name, func(root *os.Root) error {
		return removeStaged(root, p.Staged, d.path(p.Staged))
	}))
}

// removeStaged removes a staged file and the folders that it leaves empty. shownPath is the
// file's path in errors.
func removeStaged(root *os.Root, staged, shownPath string) error {
	if err := root.Remove(staged); err != nil && !missing(err) {
		return fail("remove", shownPath, err)
	}
	prune(root, path.Dir(staged))
	return nil
}

// checkPrepared refuses a prepared object that this package cannot have made. The record of a
// commit may be damaged or written by anyone, and must not lead to files outside the
// destination's staged ones.
func checkPrepared(p load.Prepared) error {
	if err := load.CheckObjectName(p.Name); err != nil {
		return err
	}
	return checkStaged(p.Staged)
}

func checkStaged(name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	if _, _, ok := load.ParseStagedName(name); !ok {
		return load.BadName(name, "it is not a prepared file of a local destination")
	}
	return nil
}

// holds tells whether the file of an object has the length and the content that were prepared.
func (d *Destination) holds(ctx context.Context, name string, p load.Prepared) (bool, error) {
	bytes, digest, err := load.Digest(ctx, d, name)
	return err == nil && bytes == p.Bytes && digest == p.SHA256, err
}

const maxBase = 255 // bytes of a file's name on common file systems

// stagedName makes the name of a run's staged file from a random text and the final name in
// base64, which has no dot. The run and the final name are in the name, because the name
// exists as soon as the file does. A final name that is too long is left out.
func stagedName(run, final string) string {
	name := load.StagedName(run, rand.Text())
	if encoded := base64.RawURLEncoding.EncodeToString([]byte(final)); len(path.Base(name))+1+len(encoded) <= maxBase {
		return name + "-" + encoded
	}
	return name
}

// stagedFor returns the final name in the name of a staged file. id is what
// load.ParseStagedName returned for that file. The final name is "" if id does not hold it.
func stagedFor(id string) string {
	_, encoded, _ := strings.Cut(id, "-")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || load.CheckObjectName(string(name)) != nil {
		return ""
	}
	return string(name)
}
