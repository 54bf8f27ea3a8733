//go:build duckdb

package duckdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// Get reads an object. A part is read from the table.
func (d *Destination) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	if inFolder(name) {
		return d.folder.Get(ctx, name)
	}
	err = d.with(ctx, "read", name, reading, func(s *session) error {
		data, version, err = s.Get(ctx, name)
		return err
	})
	if data != nil || err != nil {
		return data, version, err
	}
	data, err = tables.ReadWhole(ctx, d, name)
	return data, version, err
}

// Put writes an object whole.
func (d *Destination) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	if inFolder(name) {
		return d.folder.Put(ctx, name, data, version)
	}
	return d.change(ctx, "write", name, func(s *session) error { return s.Put(ctx, name, data, version) })
}

// Delete removes an object. The rows of a part are removed from the table.
func (d *Destination) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	if inFolder(name) {
		return d.folder.Delete(ctx, name)
	}
	if _, err := os.Stat(d.file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return d.change(ctx, "remove", name, func(s *session) error { return s.Remove(ctx, name) })
}

// List gives the objects whose names begin with prefix.
func (d *Destination) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if inFolder(prefix) {
		return d.folder.List(ctx, prefix)
	}
	err = d.with(ctx, "list", prefix, reading, func(s *session) error {
		objects, err = s.List(ctx, prefix)
		return err
	})
	return objects, err
}

// Replaceable implements load.Replacer.
func (d *Destination) Replaceable(ctx context.Context, _ string) error {
	return d.with(ctx, "use", "", reading, func(s *session) error { return s.Replaceable(ctx, d.String()) })
}

// Acquire takes the lease, which lies in the folder.
func (d *Destination) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if err := tables.CheckScope(ctx, d, scope, d.String()+scope); err != nil {
		return nil, err
	}
	lease, err := d.folder.Acquire(ctx, scope, h)
	if err == nil {
		d.removeSpills()
	}
	return lease, err
}

// Leftovers returns what is staged, of live runs too.
func (d *Destination) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	return d.folder.Leftovers(ctx)
}

// Remove removes what is staged.
func (d *Destination) Remove(ctx context.Context, l load.Leftover) error {
	return d.folder.Remove(ctx, l)
}

// Holders returns the leases that are held.
func (d *Destination) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	return d.folder.Holders(ctx)
}

// Beside implements load.Catalog for the tables of the schema.
func (d *Destination) Beside(ctx context.Context, names []string) ([]string, error) {
	found := []string{}
	for _, name := range names {
		if !inFolder(name) {
			continue
		}
		folders, err := os.ReadDir(d.beside)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, &load.IOError{Op: "list", Path: d.beside, Hint: "allow reading it", Err: err}
		}
		for _, folder := range folders {
			schema, _, _ := strings.Cut(folder.Name(), ".")
			if _, err := os.Stat(filepath.Join(d.beside, folder.Name(), filepath.FromSlash(name))); err == nil && schema == d.table.Schema {
				found = append(found, d.database()+"/"+folder.Name()+"/"+name)
			}
		}
	}
	err := d.with(ctx, "list", "", reading, func(s *session) error {
		rows, err := s.Query(ctx, "SELECT table_name || '/' || name FROM "+s.Table.Own("objects")+" WHERE name = ANY($1::text[])", names)
		if err != nil && noTable(err) {
			return nil
		}
		for _, row := range rows {
			found = append(found, d.database()+"/"+d.table.Schema+"."+string(row[0]))
		}
		return err
	})
	slices.Sort(found)
	return found, err
}
