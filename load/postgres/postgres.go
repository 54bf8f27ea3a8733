package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// Destination is a table of a database. Several goroutines may use it at once.
type Destination struct {
	address string // of the database, for people
	table   tables.Table
	conns   connections
	made    atomic.Bool // formetl's own tables are there
}

var (
	_ load.Destination = (*Destination)(nil)
	_ load.Replacer    = (*Destination)(nil)
	_ load.Transactor  = (*Destination)(nil)
)

// New returns the destination of a table. at is the table's address: that of the database,
// followed by the names of schema and table, such as postgres://host/database/forms.feedback/.
// It opens no connection.
func New(dsn, at string) (*Destination, error) {
	address, err := Address(dsn)
	if err != nil {
		return nil, &load.CreateError{Op: "use", Path: at, Hint: "correct the dsn", Err: err}
	}
	names, ok := strings.CutPrefix(strings.TrimSuffix(at, "/"), address+"/")
	if !ok {
		return nil, &load.CreateError{Op: "use", Path: at, Hint: "give the definition that writes the table", Err: errors.New("the dsn leads to another database")}
	}
	t, err := dialect().ParseTable(names)
	if err != nil {
		return nil, err
	}
	return &Destination{address: address, table: t, conns: connections{dsn: dsn}}, nil
}

// String returns the address of the table, for messages.
func (d *Destination) String() string {
	return d.address + "/" + d.table.Shown() + "/"
}

// path returns the address of an object, for messages.
func (d *Destination) path(name string) string { return d.String() + name }

// with calls do with a connection. op and name are for messages.
func (d *Destination) with(ctx context.Context, op, name string, do func(s *session) error) error {
	if err := ctx.Err(); err != nil {
		return d.failed(ctx, op, name, err)
	}
	conn, err := d.conns.take(ctx)
	if err != nil {
		return d.failed(ctx, op, name, err)
	}
	defer d.conns.give(conn)
	return d.failed(ctx, op, name, do(newSession(conn, d.table)))
}

// change calls do within a transaction, once formetl's own tables are there.
func (d *Destination) change(ctx context.Context, op, name string, do func(s *session) error) error {
	return d.with(ctx, op, name, func(s *session) error {
		if err := d.prepareTables(ctx, s); err != nil {
			return err
		}
		return s.atomically(ctx, func() error { return do(s) })
	})
}

// lockNumber returns the number of an advisory lock of a table, for a purpose.
func lockNumber(t tables.Table, purpose string) int64 {
	sum := sha256.Sum256([]byte("formetl\x00" + t.Schema + "\x00" + t.Name + "\x00" + purpose))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
}

// prepareTables creates formetl's own tables in the schema, if they are missing.
func (d *Destination) prepareTables(ctx context.Context, s *session) error {
	if d.made.Load() {
		return nil
	}
	rows, err := s.Query(ctx, "SELECT to_regclass($1), has_schema_privilege(to_regnamespace($2)::oid, 'CREATE')", d.table.Own("leases"), tables.Quote(d.table.Schema))
	if err != nil {
		return err
	}
	if rows[0][1] == nil {
		f := states()["3F000"]
		return &load.CreateError{Op: "use", Path: d.String(), Hint: f.hint, Err: &Refusal{What: f.what, Code: "3F000"}}
	}
	if string(rows[0][1]) != "t" { // each run creates tables to stage in
		f := states()["42501"]
		return &load.IOError{Op: "use", Path: d.String(), Hint: f.hint, Err: &Refusal{What: f.what, Code: "42501"}}
	}
	if rows[0][0] == nil {
		err = s.atomically(ctx, func() error {
			// Two runs may begin at the same moment, and IF NOT EXISTS does not keep them apart.
			if _, err := s.Query(ctx, "SELECT pg_advisory_xact_lock($1)", lockNumber(tables.Table{Schema: d.table.Schema}, "tables")); err != nil {
				return err
			}
			return s.Script(ctx, d.ownTables())
		})
	}
	if err == nil {
		d.made.Store(true)
	}
	return err
}

// ownTables returns the statements that create formetl's own tables.
func (d *Destination) ownTables() string {
	return strings.NewReplacer(
		"OBJECTS", d.table.Own("objects"), "IDS", d.table.Own("ids"), "RUNS", d.table.Own("runs"),
		"STAGED", d.table.Own("staged"), "LEASES", d.table.Own("leases"),
	).Replace(`
		CREATE TABLE IF NOT EXISTS OBJECTS (
			table_name text NOT NULL, name text NOT NULL, version bigserial NOT NULL, bytes bigint NOT NULL, data bytea,
			sha256 text, rows bigint, columns text, written_at timestamptz NOT NULL DEFAULT now(),
			PRIMARY KEY (table_name, name));
		CREATE TABLE IF NOT EXISTS IDS (table_name text NOT NULL, id bigint NOT NULL, part_from timestamp, part bigint NOT NULL, place bigint NOT NULL);
		CREATE INDEX IF NOT EXISTS "_formetl_ids_part" ON IDS (part);
		CREATE TABLE IF NOT EXISTS RUNS (
			table_name text NOT NULL, run_id text NOT NULL, committed_at timestamptz NOT NULL DEFAULT now(), pipeline text NOT NULL, form text NOT NULL,
			range_from timestamp, range_to timestamp, watermark timestamp, rows bigint NOT NULL, rejected bigint NOT NULL,
			PRIMARY KEY (table_name, run_id));
		CREATE TABLE IF NOT EXISTS STAGED (
			id text PRIMARY KEY, part bigserial NOT NULL, table_name text NOT NULL, run_id text NOT NULL, name text NOT NULL, begun_at timestamptz NOT NULL DEFAULT now(),
			bytes bigint, sha256 text, rows bigint, columns text, staging text, data bytea);
		CREATE TABLE IF NOT EXISTS LEASES (table_name text NOT NULL, scope text NOT NULL, holder text NOT NULL, PRIMARY KEY (table_name, scope));
	`)
}
