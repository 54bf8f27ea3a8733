package s3

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// leaseObject keeps a lease in an object of a bucket, as a lease.Store.
type leaseObject struct {
	d    *Destination
	name string
}

// Read reads the lease's object, see lease.Store.
func (o leaseObject) Read(ctx context.Context) (lease.Record, string, time.Duration, error) {
	got, err := o.d.get(ctx, o.name)
	if err != nil {
		return lease.Record{}, "", 0, err
	}
	var r lease.Record
	if json.Unmarshal(got.data, &r) != nil {
		r = lease.Record{}
	}
	return r, got.version, got.age, nil
}

// Write writes the lease's object on condition of its version, see lease.Store.
func (o leaseObject) Write(ctx context.Context, r lease.Record, version string) (string, error) {
	data, _ := json.Marshal(r) // encoding strings, numbers and times cannot fail
	return o.d.put(ctx, o.name, append(data, '\n'), version)
}

// Remove removes the lease's object, see lease.Store.
func (o leaseObject) Remove(ctx context.Context) error { return o.d.remove(ctx, o.name) }

// Acquire takes the lease of a scope, an object in the control folder, by a conditional write.
// It replaces a holder that did not renew in time. If the holder ran on this host and its
// process is gone, Acquire replaces it at once.
func (d *Destination) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if scope != "" {
		if err := load.CheckObjectName(scope); err != nil {
			return nil, err
		}
	}
	if err := d.checkNoFolder(ctx, scope); err != nil {
		return nil, err
	}
	at := leaseObject{d, load.ScopeName(load.LeaseName, scope)}
	return lease.Take(ctx, at, d.times, lease.Record{Scope: scope, Holder: h}, d.path(scope), d.options.Logger)
}

// Holders returns the holders of all leases, except those that Acquire would replace.
func (d *Destination) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	objects, err := d.List(ctx, load.ScopeName(load.LeaseName, ""))
	if err != nil {
		return nil, err
	}
	var held []load.ScopedHolder
	for _, name := range load.NamesOf(objects) {
		if !load.IsScopeName(name, load.LeaseName) {
			continue
		}
		r, _, age, err := leaseObject{d, name}.Read(ctx)
		switch {
		case errors.Is(err, load.ErrNotExist): // the lease was released meanwhile
		case err != nil:
			return nil, err
		case !d.times.Free(r, age):
			held = append(held, load.ScopedHolder{Scope: r.Scope, Holder: r.Holder})
		}
	}
	return held, nil
}
