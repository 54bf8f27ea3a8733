// Package postgres loads the rows of results into a table of a PostgreSQL database.
//
// A load is one transaction: the rows that were read are copied into a temporary table; rows
// of the table that differ from them are updated, missing ones inserted, and those of vanished
// results deleted, by result id. Rows that did not change are not touched. The manifest lies
// in the same database, and changes in the same transaction.
//
// What formetl needs besides the rows lies in the control schema, for people to read:
//
//   - datasets: the manifest of each table, without its parts, and its version
//   - parts: the parts, with the ids of their results
//   - rejects: the dead letters
//   - runs: what each load did
//   - leases: who may load now; a lease that is not renewed for a minute may be taken
//
// Nothing outlives a transaction but what is committed, so that a pooler may lend a session
// for a transaction only. The password is in the DSN alone. No address, error or table holds
// it. Begin reading with Table.Load, then `merge` (load.go), which finds
// the rows that differ.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load"
)

// FormatName is the name of the format in manifests.
const FormatName = "postgres"

// ControlSchema is the schema of formetl's own tables if a definition names none.
const ControlSchema = "formetl"

// Settings say how a table is reached and what it holds besides the columns of results.
type Settings struct {
	DSN     string
	Control string // schema of formetl's own tables; "" for ControlSchema
	Adopt   bool   // rows may go to a table that formetl did not make
	// SoftDelete keeps the rows of vanished results, and says in deleted_at when they went.
	SoftDelete bool
	Audit      bool   // rows say in loaded_at and run_id when and by which run they changed
	After      string // SQL that is done at the end of each load's transaction; "" for none
}

// Table is a table of a database. Several goroutines may use it at once.
type Table struct {
	Settings
	address string // address of the database, for people
	schema  string
	name    string

	mu   sync.Mutex
	conn *pgx.Conn // the connection for all but loads and leases; nil until one is needed
	keep bool      // the connection stays open until the lease is given back
}

var _ load.Table = (*Table)(nil)

// New returns a table. at is its address: that of the database, followed by the names of
// schema and table, such as postgres://host/database/forms.feedback/. It opens no connection.
func New(at string, s Settings) (*Table, error) {
	address, err := Address(s.DSN)
	if err != nil {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: at, Remedy: "correct the dsn", Err: err}
	}
	names, ok := strings.CutPrefix(strings.TrimSuffix(at, "/"), address+"/")
	if !ok {
		return nil, &load.Error{Kind: load.ErrUnusable, Op: "use", Path: at, Remedy: "use the definition that writes this table", Err: errors.New("the dsn belongs to another database")}
	}
	s.Control = cmp.Or(s.Control, ControlSchema)
	t := &Table{Settings: s, address: address}
	t.schema, t.name, _ = strings.Cut(names, ".")
	return t, nil
}

// String returns the address of the table, for messages.
func (t *Table) String() string { return t.address + "/" + t.dataset() + "/" }

// dataset returns the name by which formetl's own tables know the table: schema.table.
func (t *Table) dataset() string { return t.schema + "." + t.name }

// own returns the name of one of formetl's own tables, such as runs, for SQL.
func (t *Table) own(name string) string { return quote(t.Control) + "." + quote(name) }

// quote quotes a name for SQL.
func quote(names ...string) string { return pgx.Identifier(names).Sanitize() }

// connect opens a connection. Its statements are not prepared, because a pooler may lend each
// transaction another session.
func (t *Table) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(t.DSN)
	if err != nil {
		return nil, ErrDSN // the cause may hold the password
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "formetl")
	return pgx.ConnectConfig(ctx, config)
}

// with calls do with the table's connection, one call at a time. op names the action in messages.
func (t *Table) with(ctx context.Context, op string, do func(c *pgx.Conn) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil || t.conn.IsClosed() || t.conn.Ping(ctx) != nil {
		conn, err := t.connect(ctx)
		if err != nil {
			return t.failed(ctx, op, err)
		}
		t.conn = conn
	}
	defer func() {
		if !t.keep {
			_ = t.conn.Close(context.WithoutCancel(ctx)) // nothing depends on how the connection ends
		}
	}()
	return t.failed(ctx, op, do(t.conn))
}

// close closes the table's connection, if there is one.
func (t *Table) close(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keep = false; t.conn != nil {
		_ = t.conn.Close(context.WithoutCancel(ctx)) // nothing depends on how the connection ends
		t.conn = nil
	}
}

// ready finds what is missing besides the table: the control schema and its tables. The error is
// a load.ErrUnusable where a load cannot make them, or may make no temporary tables.
func (t *Table) ready(ctx context.Context, c *pgx.Conn) (schema, tables bool, err error) {
	var create, temporary, inside bool
	role := quote(c.Config().User)
	err = c.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL, (SELECT count(*) = 5 FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relname IN ('datasets', 'parts', 'rejects', 'runs', 'leases')),
		has_database_privilege(current_database(), 'CREATE'), has_database_privilege(current_database(), 'TEMPORARY'), coalesce(has_schema_privilege(to_regnamespace($1)::oid, 'CREATE'), false)`,
		quote(t.Control)).Scan(&schema, &tables, &create, &temporary, &inside)
	lacks := func(what, hint string) error {
		return &load.Error{Kind: load.ErrUnusable, Op: "use", Path: t.String(), Err: errors.New(what), Remedy: hint}
	}
	switch {
	case err != nil:
	case !temporary:
		err = lacks("the role is not allowed to create temporary tables", "run GRANT TEMPORARY ON DATABASE "+quote(c.Config().Database)+" TO "+role)
	case !schema && !create:
		err = lacks("the schema "+t.Control+" does not exist, and the role is not allowed to create it; formetl keeps its own tables there",
			"run CREATE SCHEMA "+quote(t.Control)+" AUTHORIZATION "+role+", or set control_schema: to another schema")
	case schema && !tables && !inside:
		err = lacks("the role is not allowed to create formetl's own tables in the schema "+t.Control, "run GRANT USAGE, CREATE ON SCHEMA "+quote(t.Control)+" TO "+role)
	}
	return schema, tables, err
}

// prepare creates the control schema and its tables, if they are missing.
func (t *Table) prepare(ctx context.Context, c *pgx.Conn) error {
	schema, tables, err := t.ready(ctx, c)
	if err != nil || tables {
		return err
	}
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		// Two runs may begin at the same moment, and IF NOT EXISTS does not keep them apart.
		_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('formetl ' || $1, 0))", t.Control)
		if err != nil {
			return err
		}
		if !schema {
			if _, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+quote(t.Control)); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS " + t.own("datasets") + ` (dataset text PRIMARY KEY, version bigint NOT NULL, pipeline text NOT NULL, form text NOT NULL,
				run_id text NOT NULL, watermark timestamp, rows bigint NOT NULL, rejected bigint NOT NULL, lists json NOT NULL, manifest json NOT NULL, changed_at timestamptz NOT NULL DEFAULT now())`,
			"CREATE TABLE IF NOT EXISTS " + t.own("parts") + ` (dataset text, part text, range_from timestamp, range_to timestamp, undated boolean NOT NULL,
				rows bigint NOT NULL, rejected bigint NOT NULL, min_id bigint, max_id bigint, ids bytea NOT NULL, PRIMARY KEY (dataset, part))`,
			"CREATE TABLE IF NOT EXISTS " + t.own("rejects") + ` (dataset text, part text, line integer, reject json NOT NULL, PRIMARY KEY (dataset, part, line))`,
			"CREATE TABLE IF NOT EXISTS " + t.own("runs") + ` (dataset text, run_id text, committed_at timestamptz NOT NULL DEFAULT now(), pipeline text NOT NULL, form text NOT NULL,
				range_from timestamp, range_to timestamp, watermark timestamp, inserted bigint NOT NULL, updated bigint NOT NULL, deleted bigint NOT NULL,
				rejected bigint NOT NULL, PRIMARY KEY (dataset, run_id))`,
			"CREATE TABLE IF NOT EXISTS " + t.own("leases") + ` (dataset text PRIMARY KEY, version bigint NOT NULL, renewed_at timestamptz NOT NULL, holder json NOT NULL)`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// tableOf returns the name of the table of an exploded list, "" for that of the results.
func (t *Table) tableOf(list string) string {
	if list == "" {
		return t.name
	}
	return t.name + "__" + list
}

// Scheme begins the addresses of tables in PostgreSQL.
const Scheme = "postgres"

const defaultPort = 5432

// ErrDSN means that a text is no connection string. The error does not show the text, because
// it may hold a password.
var ErrDSN = errors.New("the dsn is not a connection string of PostgreSQL, such as postgres://user@host:5432/database?sslmode=verify-full")

// Address returns the address of a database for people, such as postgres://host/database. The
// address holds no user and no password.
func Address(dsn string) (string, error) {
	config, err := pgconn.ParseConfig(dsn)
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("a file that is named in the dsn or in a PG… variable cannot be read: %w", file)
	}
	if err != nil {
		return "", ErrDSN // the error's cause may hold the password
	}
	host := escaped(config.Host)
	if config.Port != 0 && config.Port != defaultPort {
		host += ":" + strconv.Itoa(int(config.Port))
	}
	database := cmp.Or(config.Database, config.User) // as the server takes the user's name
	return Scheme + "://" + host + "/" + escaped(database), nil
}

// escaped returns a name as one element of an address, without braces.
func escaped(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "%3A", ":") }
