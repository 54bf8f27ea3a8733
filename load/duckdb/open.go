//go:build duckdb

package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	driver "github.com/duckdb/duckdb-go/v2"
	"github.com/gofrs/flock"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// waitFor is how long a call waits for another program that has the database open. Others of
// formetl get more time: a run of many forms commits one large table after the other.
const (
	waitFor     = 30 * time.Second
	waitForOurs = 20 // times as long
)

// memoryLimit bounds what DuckDB keeps in memory. The rest is spilled beside the database.
// Rows have a place of their own, so DuckDB need not keep their order.
const memoryLimit = "512MB"

// spillPrefix begins the names of the folders that DuckDB spills to. DuckDB removes them, but
// for those of a process that was killed.
const (
	spillPrefix = "spill-"
	spillAge    = 24 * time.Hour
)

// removeSpills removes what processes spilled that were killed.
func (d *Destination) removeSpills() {
	folders, _ := filepath.Glob(filepath.Join(d.folder.String(), load.ControlFolder, spillPrefix+"*")) // the pattern is good, or finds nothing
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > spillAge {
			_ = os.RemoveAll(folder) // it is tried again
		}
	}
}

// Modes of opening a database.
type mode bool

const (
	reading mode = false
	writing mode = true
)

// session is DuckDB within this process, and the database once it is attached.
type session struct {
	tables.Session
	db     *sql.DB
	conn   *sql.Conn
	opened *flock.Flock // keeps others of formetl away from the database
}

// newSession starts DuckDB without the database.
func (d *Destination) newSession(ctx context.Context) (*session, error) {
	connector, err := driver.NewConnector("", nil)
	if err != nil {
		return nil, err
	}
	s := &session{db: sql.OpenDB(connector)}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	s.Session = tables.Session{Queries: queries{s.conn}, Dialect: dialect(), Table: d.table}
	spill := filepath.Join(d.folder.String(), load.ControlFolder, spillPrefix+strconv.Itoa(os.Getpid()))
	err = s.Script(ctx, "SET memory_limit = '"+memoryLimit+"'; SET temp_directory = "+text(spill)+"; SET preserve_insertion_order = false; SET autoinstall_known_extensions = false")
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close closes the database. What was not committed has no effect.
func (s *session) close() {
	// A commit is durable before it returns, so an error here loses nothing.
	_ = s.conn.Close()
	_ = s.db.Close()
	if s.opened != nil {
		_ = s.opened.Close()
	}
}

// attached is the name of the database within a session.
const attached = "formetl"

// attach opens the database, and waits for others who have it open. To read where there is
// no file attaches nothing.
func (d *Destination) attach(ctx context.Context, s *session, m mode) error {
	_, err := os.Stat(d.file)
	fresh := errors.Is(err, os.ErrNotExist)
	if fresh && m == reading {
		return nil
	}
	if err := d.lock(ctx, s, m); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, d.wait, errBusy)
	defer cancel()
	options := " (TYPE duckdb)" // DuckDB would make a database in memory of a CSV file
	if m == reading {
		options = " (TYPE duckdb, READ_ONLY)"
	}
	for {
		err = s.Script(ctx, "ATTACH "+text(d.file)+" AS "+attached+options)
		if !isLocked(err) {
			break
		}
		select {
		case <-waiting.Done():
			return errors.Join(context.Cause(waiting), err)
		case <-time.After(5*time.Millisecond + rand.N(20*time.Millisecond)):
		}
	}
	if err == nil && fresh {
		err = os.Chmod(d.file, fileMode)
	}
	if err == nil {
		err = s.Script(ctx, "USE "+attached)
	}
	return err
}

// Modes of the database and of its lock, as other files of formetl have them.
const (
	fileMode   = 0o640
	folderMode = 0o750
)

// lock keeps others of formetl away, those in this process too: DuckDB's lock is one of the
// whole process. Who only reads makes no folder. Without a folder, nobody writes.
func (d *Destination) lock(ctx context.Context, s *session, m mode) error {
	if m == writing {
		if err := os.MkdirAll(d.beside, folderMode); err != nil {
			return err
		}
	} else if _, err := os.Stat(d.beside); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, waitForOurs*d.wait, errBusy)
	defer cancel()
	lock := flock.New(filepath.Join(d.beside, "lock"), flock.SetPermissions(fileMode))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	s.opened = lock
	return nil
}

// with calls do with the database, opened in a mode. op and name are for messages.
func (d *Destination) with(ctx context.Context, op, name string, m mode, do func(s *session) error) error {
	if err := ctx.Err(); err != nil {
		return d.failed(ctx, op, name, err)
	}
	s, err := d.newSession(ctx)
	if err != nil {
		return d.failed(ctx, op, name, err)
	}
	defer s.close()
	if err := d.attach(ctx, s, m); err != nil {
		return d.failed(ctx, op, name, err)
	}
	return d.failed(ctx, op, name, do(s))
}

// change is a change that waits for the database to be open.
type change struct {
	ctx  context.Context //nolint:containedctx // of the call that waits
	do   func(s *session) error
	done chan error
}

// changes are those that wait. A run writes many small objects side by side, and whoever has
// opened the database makes the changes of all that wait.
type changes struct {
	mu      sync.Mutex
	waiting []change
	opened  bool // one of the callers opens the database, or has
}

// next returns the changes that wait. If there are none, the next caller opens the database.
func (c *changes) next() []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	these := c.waiting
	c.waiting, c.opened = nil, len(these) > 0
	return these
}

// change calls do within a transaction, once formetl's own tables are there.
func (d *Destination) change(ctx context.Context, op, name string, do func(s *session) error) error {
	c := change{ctx, do, make(chan error, 1)}
	d.changes.mu.Lock()
	d.changes.waiting = append(d.changes.waiting, c)
	first := !d.changes.opened
	d.changes.opened = true
	d.changes.mu.Unlock()
	if first {
		d.changeAll(ctx)
	}
	return d.failed(ctx, op, name, <-c.done)
}

// changeAll opens the database and makes the changes that wait, each in a transaction.
func (d *Destination) changeAll(ctx context.Context) {
	these := d.changes.next()
	for ; len(these) > 0; these = d.changes.next() {
		err := d.with(ctx, "open", "", writing, func(s *session) error {
			for ; len(these) > 0; these = these[1:] {
				these[0].done <- s.change(these[0])
			}
			return nil
		})
		for _, c := range these {
			c.done <- err
		}
	}
}

// change makes a change in a transaction.
func (s *session) change(c change) error {
	rollback := func() { _ = s.Script(context.WithoutCancel(c.ctx), "ROLLBACK") } // if it fails, so does what follows
	return s.Atomically(c.ctx, func() error {
		if err := s.prepareTables(c.ctx); err != nil {
			return err
		}
		return c.do(s)
	}, rollback)
}

// prepareTables creates formetl's own tables in the schema, if they are missing.
func (s *session) prepareTables(ctx context.Context) error {
	schema := tables.Quote(s.Table.Schema)
	return s.Script(ctx, strings.NewReplacer("SCHEMA_", schema, "'SEQUENCE_'", text(schema+`."_formetl_versions"`)).Replace(ownTables))
}

// text writes a text for SQL.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// queries are the statements of a connection.
type queries struct{ conn *sql.Conn }

// Query does one statement and returns its rows as texts.
func (q queries) Query(ctx context.Context, sql string, args ...any) (found [][][]byte, err error) {
	rows, err := q.conn.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, pointers := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		row := make([][]byte, len(values))
		for i, v := range values {
			row[i] = printed(v)
		}
		found = append(found, row)
	}
	return found, rows.Err()
}

// printed returns a value as a text, or bytes as they are. Null is nil.
func printed(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case []byte:
		return append([]byte{}, v...)
	case bool:
		if v {
			return []byte("t")
		}
		return []byte("f")
	}
	return fmt.Append([]byte{}, v)
}

// QueryBytes is Query, which returns bytes as they are.
func (q queries) QueryBytes(ctx context.Context, sql string, args ...any) ([][][]byte, error) {
	return q.Query(ctx, sql, args...)
}

// Exec does one statement and returns how many rows it changed.
func (q queries) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	result, err := q.conn.ExecContext(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Script does several statements without parameters.
func (q queries) Script(ctx context.Context, sql string) error {
	_, err := q.conn.ExecContext(ctx, sql)
	return err
}
