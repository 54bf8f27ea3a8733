package owned

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// Output is the right to write the output of an export. A file in a bucket needs no record,
// because its metadata say who wrote it.
type Output struct{ local *Claim }

// TakeOutput claims the definition's first output. Without force, it refuses a file that
// formetl did not write.
func TakeOutput(ctx context.Context, def *definition.Definition, o account.Options, force bool) (Output, error) {
	out := def.Outputs[0]
	var foreign error
	var c Output
	switch {
	case out.Path == definition.StdoutPath:
		return c, nil
	case strings.Contains(out.Path, "://"):
		if !force {
			foreign = checkMarked(ctx, out, o)
		}
	default:
		if err := CheckOrdinary(out.Path); err != nil {
			return c, err
		}
		state, err := account.OpenState(ctx, def, o)
		if err != nil {
			return c, err
		}
		c.local, foreign = Take(ctx, state, out.Path, force)
	}
	if _, is := errors.AsType[*ForeignError](foreign); is {
		return c, &exit.Error{Code: exit.CantCreate, Err: fmt.Errorf("-o %w", foreign)}
	}
	return c, foreign
}

func checkMarked(ctx context.Context, out definition.Output, o account.Options) error {
	root, name := definition.SplitPath(out.Path)
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return err
	}
	marker, ok := dest.(load.Marker)
	if !ok {
		return nil
	}
	own, err := marker.Marked(ctx, name)
	if err == nil && !own {
		return &ForeignError{Path: out.Path}
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

// End remembers what the export wrote, if it wrote the file.
func (c Output) End(ctx context.Context, r *pipelines.Report) error {
	if c.local == nil {
		return nil
	}
	if r != nil && len(r.Forms) == 1 && len(r.Forms[0].Outputs) == 1 {
		if out := r.Forms[0].Outputs[0]; out.SHA256 != "" {
			return c.local.Wrote(ctx, out.Bytes, out.SHA256)
		}
	}
	return c.local.Failed(ctx)
}
