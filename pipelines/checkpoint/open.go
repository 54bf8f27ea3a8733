package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
)

// folderName is the name of the folder in the state that holds all checkpoints.
const folderName = "checkpoint/"

// Key returns the name of a form's checkpoint. It is equal for all runs of one pipeline that
// write the same outputs. paths are the paths of the outputs in the definition.
func Key(pipeline, form string, paths []string) string {
	return formKey(pipeline, form) + digest(fmt.Sprintf("%q", paths))[:8]
}

// formKey returns what the checkpoint keys of a form begin with.
func formKey(pipeline, form string) string {
	return digest(fmt.Sprintf("%q %q", pipeline, form))[:16] + "-"
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Open takes the lease of a checkpoint with the given key. slots is how many runs may have a
// checkpoint with this key at a time; Open takes the first that is free. If none is, it
// returns a *load.HeldError.
func Open(ctx context.Context, s State, key string, slots int, h load.Holder) (*Checkpoint, error) {
	var held *load.HeldError
	for slot := range slots {
		name := key
		if slot > 0 {
			name += fmt.Sprintf(".%d", slot)
		}
		c := checkpointAt(s, name)
		err := c.take(ctx, h)
		switch {
		case err == nil:
			return c, nil
		case !errors.As(err, &held):
			return nil, err
		}
	}
	return nil, &load.HeldError{Path: checkpointAt(s, key).Place, Holder: held.Holder}
}

// checkpointAt returns the checkpoint with a name, without taking its lease.
func checkpointAt(s State, name string) *Checkpoint {
	c := &Checkpoint{Pace: localPace, Place: s.PathOf(folderName + name), state: s, prefix: folderName + name + "/"}
	if s.Remote() {
		c.Pace = remotePace
	}
	return c
}

// take takes the lease of the checkpoint for the run of h: the lease of the header object.
func (c *Checkpoint) take(ctx context.Context, h load.Holder) (err error) {
	c.run = digest(h.RunID)[:8]
	return c.state.Try(ctx, func() error {
		c.lease, err = c.state.Acquire(ctx, c.prefix+headerName, h)
		return err
	})
}

// held returns an error once another run has taken the lease, and so owns the checkpoint.
func (c *Checkpoint) held() error {
	select {
	case <-c.lease.Lost():
		return c.taken()
	default:
	}
	if c.foreign {
		return c.taken()
	}
	return nil
}

func (c *Checkpoint) taken() error {
	return fmt.Errorf("another run has taken over what this run had read (checkpoint %s): %w", c.Place, load.ErrConflict)
}

// get reads an object of the checkpoint. The error wraps load.ErrNotExist if there is no such
// object.
func (c *Checkpoint) get(ctx context.Context, name string) (data []byte, err error) {
	err = c.state.Try(ctx, func() error {
		data, _, err = c.state.Get(ctx, c.prefix+name)
		return err
	})
	return data, err
}

// put writes a whole object of the checkpoint, and replaces an object with the same name.
func (c *Checkpoint) put(ctx context.Context, name string, data []byte) error {
	return c.change(ctx, func() error { return c.state.Put(ctx, c.prefix+name, data, load.AnyVersion) })
}

// remove deletes an object of the checkpoint. A missing object is no error.
func (c *Checkpoint) remove(ctx context.Context, name string) error {
	return c.change(ctx, func() error { return c.state.Delete(ctx, c.prefix+name) })
}

// change calls do, which writes to the checkpoint, as State.Try does. It fails once another
// run has taken the checkpoint.
func (c *Checkpoint) change(ctx context.Context, do func() error) error {
	return c.state.Try(ctx, func() error {
		if err := c.held(); err != nil {
			return err
		}
		return do()
	})
}

// list returns the names of all objects of the checkpoint, without its prefix.
func (c *Checkpoint) list(ctx context.Context) (names []string, err error) {
	var found []load.Object
	err = c.state.Try(ctx, func() error {
		found, err = c.state.List(ctx, c.prefix)
		return err
	})
	for _, name := range load.NamesOf(found) {
		names = append(names, name[len(c.prefix):])
	}
	return names, err
}
