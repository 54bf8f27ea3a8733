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
	"syscall"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// The state folder remembers which local files formetl's exports wrote, so that an export does not
// overwrite a file that something else wrote. For each path it has a record with the size and the
// SHA-256 of the file that an export wrote there last. A file that differs from its record is
// foreign. While an export runs, the record is marked as Writing. If that export is killed, the
// next one may overwrite the file whatever it holds, because it may be half written.

// foreign returns the error for a file that no export wrote, or that was changed since.
func foreign(path string) error {
	return &definition.Fault{Code: console.ExitCantCreate, Text: path + " already exists; `formetl export` did not write it, or somebody changed it since", Cure: "add --force to overwrite it, or choose another name"}
}

// record is what the state folder remembers of the file at a path.
type record struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Writing bool   `json:"writing,omitempty"` // an export to this path has begun and not ended
}

// claim is the right of a running export to write a file. It lasts until End.
type claim struct {
	state  checkpoint.State
	name   string // the record's name in the state
	before record // the record before this export; without SHA256 if there was none
}

// takeFile claims the file at an absolute path for an export. state holds the records. A file that
// no export wrote is an error, unless force is set.
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

// describes tells whether the file at a path has the size and sum of the record. It is true if
// no regular file is there.
func (r record) describes(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot look at the file that already exists: %w", err)
	case !info.Mode().IsRegular():
		return true, nil // CheckOrdinary judges what is no regular file
	case r.SHA256 == "" || info.Size() != r.Size:
		return false, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("cannot look at the file that already exists: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return false, fmt.Errorf("cannot read the file that already exists: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)) == r.SHA256, nil
}

// put replaces the claim's record in the state, unless somebody replaced it meanwhile.
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

// claims are the claims of an export's files.
type claims []*claim

// takeOutputs claims the files of the definition's outputs. Without force, it refuses files that
// formetl did not write. For a file in a bucket there is no claim: its metadata say who wrote it,
// so it needs no record.
func takeOutputs(ctx context.Context, def *definition.Definition, o pipelines.Options, force bool) (taken claims, err error) {
	for _, out := range def.Outputs {
		c, err := takeOutput(ctx, def, o, out, force)
		if err != nil {
			return nil, errors.Join(err, taken.End(context.WithoutCancel(ctx), nil))
		}
		if c != nil {
			taken = append(taken, c)
		}
	}
	return taken, nil
}

func takeOutput(ctx context.Context, def *definition.Definition, o pipelines.Options, out definition.Output, force bool) (*claim, error) {
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
	dest, err := o.BuiltIn.Open(ctx, root, out)
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
	// The store's answer to Stat has no text, so another request is made to show the cause.
	if _, _, cause := dest.Get(ctx, load.FileManifestName(name)); cause != nil && !errors.Is(cause, load.ErrNotExist) {
		return cause
	}
	return err
}

// End replaces the records of the claimed files in the state folder: by what the export wrote, or
// by the record from before where the export did not write the file.
func (taken claims) End(ctx context.Context, r *pipelines.Report) (err error) {
	for _, c := range taken {
		last := c.before
		if r != nil && len(r.Forms) == 1 {
			for _, out := range r.Forms[0].Outputs {
				if out.Path == c.before.Path && out.SHA256 != "" {
					last = record{Path: c.before.Path, Size: out.Bytes, SHA256: out.SHA256}
				}
			}
		}
		err = errors.Join(err, c.put(ctx, last))
	}
	return err
}
