package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// The state folder remembers which local files formetl's exports wrote, so that an export
// overwrites no file of anybody else: a record for each path has the size and the SHA-256 of
// what was written there last. A file that differs from its record is somebody else's. While an
// export runs, its record says so. If the export is killed, the next one may overwrite what lies
// at the path, because nobody knows how far the killed one came.

// foreignError reports a file that no export wrote, or that was changed since.
type foreignError struct{ Path string }

// Error names the file and both ways out.
func (e *foreignError) Error() string {
	return fmt.Sprintf("%s is there, and formetl did not write it as it is: give --force to overwrite it, or another name", e.Path)
}

// record is what the state folder knows of a path.
type record struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Writing bool   `json:"writing,omitempty"` // an export of this path has begun and not ended
}

// claim is the right of an export to write a file, until Wrote or Failed ends it.
type claim struct {
	state        checkpoint.State
	path, record string
	before       []byte // the record before; nil if there was none
}

// Take claims the file at an absolute path. The state holds the records. Without force, the
// error is a *foreignError if the file is somebody else's.
func takeFile(ctx context.Context, state checkpoint.State, path string, force bool) (*claim, error) {
	sum := sha256.Sum256([]byte(path))
	c := &claim{state: state, path: path, record: "exports/" + hex.EncodeToString(sum[:16]) + ".json"}
	var err error
	if c.before, _, err = state.Get(ctx, c.record); err != nil && !errors.Is(err, load.ErrNotExist) {
		return nil, state.Fail(err)
	}
	var known record
	if json.Unmarshal(c.before, &known) != nil || known.Path != path {
		c.before, known = nil, record{}
	}
	if !force && !known.Writing {
		own, err := known.describes(path)
		if err != nil {
			return nil, err
		}
		if !own {
			return nil, &foreignError{Path: path}
		}
	}
	known.Path, known.Writing = path, true
	return c, c.put(ctx, known)
}

// describes tells whether the file at a path is as the record says. It is true if there
// is no regular file.
func (r record) describes(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot look at what is there: %w", err)
	case !info.Mode().IsRegular():
		return true, nil // CheckOrdinary is for others
	case r.SHA256 == "" || info.Size() != r.Size:
		return false, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("cannot look at what is there: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return false, fmt.Errorf("cannot read what is there: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)) == r.SHA256, nil
}

// Wrote ends the claim: the file now has so many bytes with this SHA-256, in hexadecimal.
func (c *claim) Wrote(ctx context.Context, size int64, sum string) error {
	return c.put(ctx, record{Path: c.path, Size: size, SHA256: sum})
}

// Failed ends the claim of an export that did not write the file.
func (c *claim) Failed(ctx context.Context) error {
	if c.before == nil {
		return c.state.Fail(c.state.Delete(ctx, c.record))
	}
	return c.write(ctx, c.before)
}

func (c *claim) put(ctx context.Context, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return c.write(ctx, append(data, '\n'))
}

// write replaces the record in one step.
func (c *claim) write(ctx context.Context, data []byte) error {
	_, version, err := c.state.Get(ctx, c.record)
	if err == nil || errors.Is(err, load.ErrNotExist) {
		err = c.state.Put(ctx, c.record, data, version)
	}
	return c.state.Fail(err)
}

// takeOutput claims the definition's first output. Without force, it refuses a file that
// formetl did not write. A file in a bucket needs no record, because its metadata say who
// wrote it: then the claim is nil.
func takeOutput(ctx context.Context, def *definition.Definition, o account.Options, force bool) (c *claim, foreign error) {
	out := def.Outputs[0]
	switch {
	case out.Path == definition.StdoutPath:
		return nil, nil //nolint:nilnil // nothing is to be claimed
	case strings.Contains(out.Path, "://"):
		if !force {
			foreign = checkMarked(ctx, out, o)
		}
	default:
		if err := console.CheckOrdinary(out.Path); err != nil {
			return nil, err
		}
		state, err := account.OpenState(ctx, def, o)
		if err != nil {
			return nil, err
		}
		c, foreign = takeFile(ctx, state, out.Path, force)
	}
	if _, is := errors.AsType[*foreignError](foreign); is {
		return c, &console.CodeError{Code: console.ExitCantCreate, Err: fmt.Errorf("-o %w", foreign)}
	}
	return c, foreign
}

func checkMarked(ctx context.Context, out definition.Output, o account.Options) error {
	root, name := definition.SplitPath(out.Path)
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return err
	}
	there, err := dest.Stat(ctx, name)
	if err == nil && !there.Marked {
		return &foreignError{Path: out.Path}
	}
	if err == nil || errors.Is(err, load.ErrNotExist) {
		return nil
	}
	// The store's answer to this question has no text. Another question shows the cause.
	if _, _, cause := dest.Get(ctx, load.FileManifestName(name)); cause != nil && !errors.Is(cause, load.ErrNotExist) {
		return cause
	}
	return err
}

// End remembers what the export wrote, if it wrote the file. A nil claim has nothing to end.
func (c *claim) End(ctx context.Context, r *pipelines.Report) error {
	if c == nil {
		return nil
	}
	if r != nil && len(r.Forms) == 1 && len(r.Forms[0].Outputs) == 1 {
		if out := r.Forms[0].Outputs[0]; out.SHA256 != "" {
			return c.Wrote(ctx, out.Bytes, out.SHA256)
		}
	}
	return c.Failed(ctx)
}
