package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
)

// Check tells whether the staged file is there with the right length, or the
// final file is the one that was prepared.
func (d *Destination) Check(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	if err := checkContext(ctx, "check", p.Name); err != nil {
		return err
	}
	root, err := d.open(false)
	if missing(err) {
		return fmt.Errorf("%s cannot be committed: the folder %s is gone: %w", p.Name, d.root, load.ErrStagedGone)
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it only resolves paths: an error here loses nothing
	info, err := root.Lstat(p.Staged)
	problem := "its staged file is gone"
	switch {
	case missing(err):
	case err != nil:
		return failRead("read", d.path(p.Staged), err)
	case !info.Mode().IsRegular() || info.Size() != p.Bytes:
		problem = fmt.Sprintf("its staged file has %d bytes instead of %d", info.Size(), p.Bytes)
	default:
		_, digest, err := sum(root, p.Staged)
		if err == nil && digest == p.SHA256 {
			return nil
		}
		if err != nil && !missing(err) {
			return failRead("read", d.path(p.Staged), err)
		}
		problem = "its staged file has other content than was written"
	}
	err = d.committed(root, p)
	if errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrStagedGone) {
		// It does not matter here that another file has the name. What matters
		// is that the staged file is gone.
		return fmt.Errorf("%s cannot be committed: %s: %w", d.path(p.Name), problem, load.ErrStagedGone)
	}
	return err
}
