package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// Acquire takes the table's lease, a row that its holder renews. There is one scope: the table.
func (t *Table) Acquire(ctx context.Context, _ string, h load.Holder) (load.Lease, error) {
	if err := t.with(ctx, "use", func(c *pgx.Conn) error { return t.prepare(ctx, c) }); err != nil {
		return nil, err
	}
	own := &Table{Settings: t.Settings, address: t.address, schema: t.schema, name: t.name, keep: true} // a connection for leases alone
	taken, err := lease.Take(ctx, leaseRow{own}, lease.DefaultTimes(), lease.Record{Holder: h}, t.String(), slog.New(slog.DiscardHandler))
	if err != nil {
		own.close(ctx)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep = true
	return &tableLease{taken, []*Table{own, t}}, nil
}

// tableLease is the lease of a table. To release it also closes the connections that it and the
// table use.
type tableLease struct {
	load.Lease
	tables []*Table
}

// Release gives the lease back, and closes the connections.
func (h *tableLease) Release(ctx context.Context) error {
	err := h.Lease.Release(ctx)
	for _, t := range h.tables {
		t.close(ctx)
	}
	return err
}

// Holder returns the holder of the table's lease, nil if nobody holds it.
func (t *Table) Holder(ctx context.Context) (*load.Holder, error) {
	r, _, age, err := leaseRow{t}.Read(ctx)
	switch {
	case errors.Is(err, load.ErrNotExist) || err == nil && lease.DefaultTimes().Free(r, age):
		return nil, nil //nolint:nilnil // as Holder's comment says, nobody holds the lease
	case err != nil:
		return nil, err
	}
	return &r.Holder, nil
}

// leaseRow keeps the table's lease as a lease.Store.
type leaseRow struct{ t *Table }

// Read reads the lease's row, see lease.Store.
func (l leaseRow) Read(ctx context.Context) (r lease.Record, version string, age time.Duration, err error) {
	err = l.t.with(ctx, "look for other runs at", func(c *pgx.Conn) error {
		var number int64
		var holder []byte
		var seconds float64
		err := c.QueryRow(ctx, "SELECT version, holder::text, extract(epoch FROM clock_timestamp() - renewed_at)::float8 FROM "+l.t.own("leases")+" WHERE dataset = $1",
			l.t.dataset()).Scan(&number, &holder, &seconds)
		if errors.Is(err, pgx.ErrNoRows) || noTable(err) {
			return fmt.Errorf("the lease: %w", load.ErrNotExist)
		}
		if json.Unmarshal(holder, &r) != nil { // somebody changed the lease's row by hand
			r = lease.Record{}
		}
		version, age = strconv.FormatInt(number, 10), time.Duration(seconds*float64(time.Second))
		return err
	})
	return r, version, age, err
}

// Write writes the lease's row, see lease.Store.
func (l leaseRow) Write(ctx context.Context, r lease.Record, version string) (written string, err error) {
	holder, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	statement := "INSERT INTO " + l.t.own("leases") + " VALUES ($1, 1, clock_timestamp(), $2) ON CONFLICT DO NOTHING RETURNING version"
	args := []any{l.t.dataset(), string(holder)}
	if version != load.NoVersion {
		statement = "UPDATE " + l.t.own("leases") + " SET version = version + 1, renewed_at = clock_timestamp(), holder = $2 WHERE dataset = $1 AND version = $3::bigint RETURNING version"
		args = append(args, version)
	}
	err = l.t.with(ctx, "lock", func(c *pgx.Conn) error {
		var number int64
		err := c.QueryRow(ctx, statement, args...).Scan(&number)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("the lease: %w", load.ErrConflict)
		}
		written = strconv.FormatInt(number, 10)
		return err
	})
	return written, err
}

// Remove deletes the lease's row, see lease.Store.
func (l leaseRow) Remove(ctx context.Context) error {
	return l.t.with(ctx, "unlock", func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "DELETE FROM "+l.t.own("leases")+" WHERE dataset = $1", l.t.dataset())
		return err
	})
}
