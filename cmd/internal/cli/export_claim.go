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
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// The state folder remembers which local files formetl's exports wrote, so that an export
// overwrites no file of anybody else: a record for each path has the size and the SHA-256 of
// what was written there last. A file that differs from its record is somebody else's. While an
// export runs, its record says so. If the export is killed, the next one may overwrite what lies
// at the path, because nobody knows how far the killed one came.

// foreign is the error of a file that no export wrote, or that was changed since.
func foreign(path string) error {
	return &console.CodeError{Code: console.ExitCantCreate, Err: fmt.Errorf("-o %s is there, and formetl did not write it as it is: give --force to overwrite it, or another name", path)}
}

// record is what the state folder knows of a path.
type record struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Writing bool   `json:"writing,omitempty"` // an export of this path has begun and not ended
}

// claim is the right of an export to write a file, until End.
type claim struct {
	state  checkpoint.State
	name   string // of the record
	before record // without a sum if there was none
}

// takeFile claims the file at an absolute path. The state holds the records. Without force,
// somebody else's file is an error.
func takeFile(ctx context.Context, state checkpoint.State, path string, force bool) (*claim, error) {
	sum := sha256.Sum256([]byte(path))
	c := &claim{state: state, name: "exports/" + hex.EncodeToString(sum[:16]) + ".json"}
	data, _, err := state.Get(ctx, c.name)
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return nil, state.Fail(err)
	}
	if json.Unmarshal(data, &c.before) != nil || c.before.Path != path {
		c.before = record{Path: path}
	}
	if !force && !c.before.Writing {
		own, err := c.before.describes(path)
		if err != nil {
			return nil, err
		}
		if !own {
			return nil, foreign(path)
		}
	}
	writing := c.before
	writing.Writing = true
	return c, c.put(ctx, writing)
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

// put replaces the record in one step.
func (c *claim) put(ctx context.Context, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, version, err := c.state.Get(ctx, c.name)
	if err == nil || errors.Is(err, load.ErrNotExist) {
		err = c.state.Put(ctx, c.name, append(data, '\n'), version)
	}
	return c.state.Fail(err)
}

// takeOutput claims the definition's first output. Without force, it refuses a file that
// formetl did not write. A file in a bucket needs no record, because its metadata say who
// wrote it: then the claim is nil.
func takeOutput(ctx context.Context, def *definition.Definition, o pipelines.Options, force bool) (*claim, error) {
	out := def.Outputs[0]
	switch {
	case out.Path == definition.StdoutPath, force && strings.Contains(out.Path, "://"):
		return nil, nil //nolint:nilnil // nothing is to be claimed
	case strings.Contains(out.Path, "://"):
		return nil, checkMarked(ctx, out, o)
	}
	if err := console.CheckOrdinary(out.Path); err != nil {
		return nil, err
	}
	state, err := pipelines.OpenState(ctx, def, o)
	if err != nil {
		return nil, err
	}
	return takeFile(ctx, state, out.Path, force)
}

func checkMarked(ctx context.Context, out definition.Output, o pipelines.Options) error {
	root, name := definition.SplitPath(out.Path)
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return err
	}
	there, err := dest.Stat(ctx, name)
	if err == nil && !there.Marked {
		return foreign(out.Path)
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

// End remembers what the export wrote, or what was there before if it did not write the file. A
// nil claim has nothing to end.
func (c *claim) End(ctx context.Context, r *pipelines.Report) error {
	if c == nil {
		return nil
	}
	last := c.before
	if r != nil && len(r.Forms) == 1 && len(r.Forms[0].Outputs) == 1 {
		if out := r.Forms[0].Outputs[0]; out.SHA256 != "" {
			last = record{Path: c.before.Path, Size: out.Bytes, SHA256: out.SHA256}
		}
	}
	return c.put(ctx, last)
}
