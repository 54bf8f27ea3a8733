package account

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// CheckpointKey returns the key of a form's checkpoint. It depends on the pipeline,
// the form and the paths of the outputs.
func CheckpointKey(def *definition.Definition, form string) string {
	paths := make([]string, len(def.Outputs))
	for i, out := range def.Outputs {
		if paths[i] = out.Path; def.CheckpointAtDestination { // another host may have it elsewhere
			paths[i] = path.Base(filepath.ToSlash(out.Path))
		}
	}
	return checkpoint.Key(def.Name, form, paths)
}

// Checkpoints returns the checkpoints of forms that earlier runs of the definition
// left and that no run holds, oldest first. They lie in the state folder, or at the
// first output where the definition says so.
func Checkpoints(ctx context.Context, def *definition.Definition, o Options, forms []string) (left []checkpoint.Left, err error) {
	if def.CheckpointAtDestination {
		for _, form := range forms {
			at, err := remoteCheckpointOf(ctx, def, o, form)
			if err != nil {
				return left, err
			}
			if l, err := at.left(ctx); l != nil && err == nil { // a checkpoint that cannot be read is not taken over
				left = append(left, *l)
			}
		}
		return left, nil
	}
	return checkpoint.LeftIn(ctx, def.State, func(h checkpoint.Header) bool {
		return slices.Contains(forms, h.Form) && h.Is(def.Name, h.Form, def.File)
	}), nil
}

// DiscardCheckpoints removes the checkpoints of forms that earlier runs left, and
// returns those that it removed. A checkpoint that a run has locked meanwhile stays.
func DiscardCheckpoints(ctx context.Context, def *definition.Definition, o Options, forms []string) (discarded []checkpoint.Left, err error) {
	left, err := Checkpoints(ctx, def, o, forms)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		var gone bool
		var failed error
		if def.CheckpointAtDestination {
			gone, failed = discardRemote(ctx, def, o, l.Form)
		} else {
			gone, failed = l.Discard(ctx)
		}
		if err = errors.Join(err, failed); gone {
			discarded = append(discarded, l)
		}
	}
	return discarded, err
}

// remoteCheckpoint is a checkpoint at the first output of a definition.
type remoteCheckpoint struct {
	*checkpoint.Checkpoint
	dest  load.Destination
	scope string // of the lease that stands for its lock
}

// remoteCheckpointOf opens the checkpoint of a form at the first output. Its
// Checkpoint is nil if the output is standard output or lies elsewhere in each run.
func remoteCheckpointOf(ctx context.Context, def *definition.Definition, o Options, form string) (c remoteCheckpoint, err error) {
	out := def.Outputs[0]
	if !out.Lasting() {
		return c, nil
	}
	at, err := output.Locate(def, out, form, o.RunID)
	if err != nil {
		return c, err
	}
	c.scope = at.Scope
	if c.dest, err = o.Tables.Open(ctx, at.Root, out); err != nil {
		return c, err
	}
	c.Checkpoint = checkpoint.OpenAt(c.dest, at.Root, CheckpointKey(def, form), func() error { return nil })
	return c, nil
}

// left describes the checkpoint, nil where there is none or a run holds it.
func (c remoteCheckpoint) left(ctx context.Context) (*checkpoint.Left, error) {
	if c.Checkpoint == nil {
		return nil, nil
	}
	found, err := load.Look(ctx, c.dest, c.scope)
	if err != nil || found.Holder != nil {
		return nil, err
	}
	return c.Left(ctx)
}

// discardRemote removes a checkpoint at the first output, under its lease.
func discardRemote(ctx context.Context, def *definition.Definition, o Options, form string) (bool, error) {
	c, err := remoteCheckpointOf(ctx, def, o, form)
	if c.Checkpoint == nil || err != nil {
		return false, err
	}
	leaser, ok := c.dest.(load.Leaser)
	if !ok {
		return false, nil
	}
	lease, err := leaser.Acquire(ctx, c.scope, o.Job(def, form).Holder())
	if _, held := errors.AsType[*load.HeldError](err); held {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = c.Clear(ctx)
	if err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))); err != nil {
		return false, fmt.Errorf("the checkpoint at %s: %w", c.Place, err)
	}
	return true, nil
}
