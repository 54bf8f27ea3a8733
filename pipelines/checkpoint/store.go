package checkpoint

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/load"
)

// store reads and writes the objects of one checkpoint. Names are plain file names.
type store interface {
	// get reads an object. It returns load.ErrNotExist if there is none. It may
	// use the memory of room, which may be nil, for the data.
	get(ctx context.Context, name string, room []byte) ([]byte, error)
	// put writes a whole object and replaces one of the same name.
	put(ctx context.Context, name string, data []byte) error
	// list returns the names of all objects.
	list(ctx context.Context) ([]string, error)
	// remove deletes an object. It returns nil if there is none.
	remove(ctx context.Context, name string) error
}

// folder is a store on the local disk. Only its owner can read it, because the
// rows are personal data. Only the header is synced to the disk. The system's
// file cache keeps what a killed process wrote.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) get(_ context.Context, name string, room []byte) ([]byte, error) {
	file, err := os.Open(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, load.ErrNotExist
	}
	if err != nil {
		return nil, f.fail(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, f.fail(err)
	}
	data := slices.Grow(room[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(file, data)
	return data, f.fail(err)
}

func (f folder) put(_ context.Context, name string, data []byte) error {
	if name == headerName {
		return f.fail(maybe.WriteFile(f.path(name), data, 0o600))
	}
	return f.fail(os.WriteFile(f.path(name), data, 0o600))
}

func (f folder) list(context.Context) ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, f.fail(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (f folder) remove(_ context.Context, name string) error {
	err := os.Remove(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.fail(err)
}

func (f folder) fail(err error) error {
	if err == nil {
		return nil
	}
	return &FolderError{Folder: string(f), Err: err}
}

// objects is a store in the control folder of an output's destination.
type objects struct {
	store  load.Store
	prefix string       // ends in a slash
	held   func() error // fails once another run has the lease and so owns the checkpoint
}

func (o objects) get(ctx context.Context, name string, _ []byte) ([]byte, error) {
	data, _, err := o.store.Get(ctx, o.prefix+name)
	return data, err
}

func (o objects) put(ctx context.Context, name string, data []byte) error {
	if err := o.held(); err != nil {
		return err
	}
	return o.store.Put(ctx, o.prefix+name, data, load.AnyVersion)
}

func (o objects) list(ctx context.Context) ([]string, error) {
	found, err := o.store.List(ctx, o.prefix)
	if err != nil {
		return nil, err
	}
	names := load.NamesOf(found)
	for i := range names {
		names[i] = names[i][len(o.prefix):]
	}
	return names, nil
}

func (o objects) remove(ctx context.Context, name string) error {
	if err := o.held(); err != nil {
		return err
	}
	return o.store.Delete(ctx, o.prefix+name)
}
