package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// State is where runs keep what later runs need: a folder, or a prefix of a bucket that
// several hosts share.
type State struct {
	load.Destination
	Place string // the folder's absolute path or the bucket's address, for people
}

// Remote tells whether each object costs a request.
func (s State) Remote() bool { return strings.Contains(s.Place, "://") }

// Of returns the place of an object, for people.
func (s State) Of(name string) string {
	if s.Remote() {
		return strings.TrimSuffix(s.Place, "/") + "/" + name
	}
	return filepath.Join(s.Place, filepath.FromSlash(name))
}

// StateError reports that the state cannot be read or written.
type StateError struct {
	Place string
	Err   error
}

// Error names the place and what to do.
func (e *StateError) Error() string {
	return fmt.Sprintf("the state in %s: %v; or keep it elsewhere with --state", e.Place, e.Err)
}

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Err }

// Temporary is false: the state was tried for long already, and whatever needs it is not tried
// again at once.
func (e *StateError) Temporary() bool { return false }

// UnreachedError reports that the state cannot be reached at the start, before anything is asked
// of the service.
type UnreachedError struct{ Err error }

// Error is that of the state.
func (e *UnreachedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachedError) Unwrap() error { return e.Err }

// Fail wraps an error of the state in a *StateError. A missing object and a lost race are
// none: they are part of how the state is used.
func (s State) Fail(err error) error {
	if err == nil || errors.Is(err, load.ErrNotExist) || errors.Is(err, load.ErrConflict) {
		return err
	}
	return &StateError{Place: s.Place, Err: err}
}

// folderName is the folder of the state that holds all checkpoints.
const folderName = "checkpoint/"

// Key returns the name of a form's checkpoint. It is equal for all runs of one pipeline that
// write the same outputs. paths are the paths of the outputs in the definition.
func Key(pipeline, form string, paths []string) string {
	return formKey(pipeline, form) + digest(fmt.Sprintf("%q", paths))[:8]
}

// formKey is what the keys of a form begin with.
func formKey(pipeline, form string) string {
	return digest(fmt.Sprintf("%q %q", pipeline, form))[:16] + "-"
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Open takes the lease of the checkpoint of a key. slots is how many runs may have a
// checkpoint of this key at a time; Open takes the first free one. If there is none, it
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
			return nil, s.Fail(err)
		}
	}
	return nil, &load.HeldError{Path: checkpointAt(s, key).Place, Holder: held.Holder}
}

// checkpointAt returns the checkpoint of a name, whose lease nobody has taken.
func checkpointAt(s State, name string) *Checkpoint {
	c := &Checkpoint{Pace: localPace, Place: s.Of(folderName + name), state: s, prefix: folderName + name + "/"}
	if s.Remote() {
		c.Pace = remotePace
	}
	return c
}

// take takes the lease of the checkpoint, which is that of its header.
func (c *Checkpoint) take(ctx context.Context, h load.Holder) (err error) {
	c.lease, err = c.state.Acquire(ctx, c.prefix+headerName, h)
	return err
}

// held fails once another run has taken the lease, and so owns the checkpoint.
func (c *Checkpoint) held() error {
	select {
	case <-c.lease.Lost():
		return fmt.Errorf("another run has taken the checkpoint %s: %w", c.Place, load.ErrConflict)
	default:
		return nil
	}
}

// get reads an object. The error wraps load.ErrNotExist if there is none.
func (c *Checkpoint) get(ctx context.Context, name string) ([]byte, error) {
	data, _, err := c.state.Get(ctx, c.prefix+name)
	return data, c.state.Fail(err)
}

// read reads an object of at least so many bytes into memory that it may use.
func (c *Checkpoint) read(ctx context.Context, name string, bytes int64, room []byte) ([]byte, error) {
	object, err := c.state.Open(ctx, c.prefix+name)
	if err != nil {
		return nil, c.state.Fail(err)
	}
	defer func() { _ = object.Close() }() // it is only read
	data := slices.Grow(room[:0], int(bytes))[:bytes]
	if _, err = io.ReadFull(object, data); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, ErrDamaged
	}
	return data, c.state.Fail(err)
}

// put writes a whole object and replaces one of the same name.
func (c *Checkpoint) put(ctx context.Context, name string, data []byte) error {
	if err := c.held(); err != nil {
		return err
	}
	return c.state.Fail(c.state.Put(ctx, c.prefix+name, data, load.AnyVersion))
}

// list returns the names of all objects.
func (c *Checkpoint) list(ctx context.Context) ([]string, error) {
	found, err := c.state.List(ctx, c.prefix)
	if err != nil {
		return nil, c.state.Fail(err)
	}
	names := load.NamesOf(found)
	for i := range names {
		names[i] = names[i][len(c.prefix):]
	}
	return names, nil
}

// remove deletes an object. It is no error if there is none.
func (c *Checkpoint) remove(ctx context.Context, name string) error {
	if err := c.held(); err != nil {
		return err
	}
	return c.state.Fail(c.state.Delete(ctx, c.prefix+name))
}
