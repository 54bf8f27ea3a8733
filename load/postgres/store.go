package postgres

import (
	"context"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// Get reads an object. A part is read from the table.
func (d *Destination) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	if err := load.CheckName(name); err != nil {
		return nil, "", err
	}
	err = d.with(ctx, "read", name, func(s *session) error {
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
	return d.change(ctx, "write", name, func(s *session) error { return s.Put(ctx, name, data, version) })
}

// Delete removes an object. The rows of a part are removed from the table.
func (d *Destination) Delete(ctx context.Context, name string) error {
	if err := load.CheckName(name); err != nil {
		return err
	}
	return d.with(ctx, "remove", name, func(s *session) error {
		err := s.atomically(ctx, func() error { return s.Remove(ctx, name) })
		if noTable(err) { // nothing was ever written
			return nil
		}
		return err
	})
}

// List gives the objects whose names begin with prefix.
func (d *Destination) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	if err := load.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	err = d.with(ctx, "list", prefix, func(s *session) error {
		objects, err = s.List(ctx, prefix)
		return err
	})
	return objects, err
}

// Commit makes a prepared object visible. The rows of a part go into the table.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	if err := checkStaged(p); err != nil {
		return err
	}
	return d.change(ctx, "commit", p.Name, func(s *session) error {
		if err := s.locks(ctx, committing); err != nil {
			return err
		}
		return s.Commit(ctx, staging{s}, p)
	})
}

// Replaceable implements load.Replacer.
func (d *Destination) Replaceable(ctx context.Context, _ string) error {
	return d.with(ctx, "use", "", func(s *session) error { return s.Replaceable(ctx, d.String()) })
}
