package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load/internal/tables"
)

// mostIdle is how many connections are kept for the next call.
const mostIdle = 4

// connections opens connections to one database and keeps a few that are free, until the
// lease of the destination ends. Without a lease the process ends soon.
type connections struct {
	dsn   string
	whole atomic.Bool // no pooler splits them, see check
	mu    sync.Mutex
	free  []idle
}

// idle is a connection that nobody uses.
type idle struct {
	conn  *pgconn.PgConn
	since time.Time
}

// trusted is how long a free connection is taken for a good one without being asked.
const trusted = time.Second

// take returns a free connection or a new one.
func (c *connections) take(ctx context.Context) (*pgconn.PgConn, error) {
	for {
		c.mu.Lock()
		n := len(c.free)
		if n == 0 {
			c.mu.Unlock()
			return c.connect(ctx)
		}
		last := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		if time.Since(last.since) < trusted || last.conn.Ping(ctx) == nil {
			return last.conn, nil
		}
		_ = last.conn.Close(ctx) // it is broken
	}
}

// settings are what the bytes of rows and the statements rely on, whatever the server's
// defaults are. They are set after the connection is made, because poolers refuse most of
// them before. A computer that vanished must not keep its lease for hours.
const settings = `SET client_encoding = 'UTF8'; SET DateStyle = 'ISO'; SET TimeZone = 'UTC'; SET standard_conforming_strings = on;
	SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
	SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 4`

// connect opens a connection, which has a session of the server to itself.
func (c *connections) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := c.dial(ctx)
	if err != nil || c.whole.Load() {
		return conn, err
	}
	if err := c.check(ctx, conn); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // it did nothing yet
		return nil, err
	}
	c.whole.Store(true)
	return conn, nil
}

// dial opens a connection.
func (c *connections) dial(ctx context.Context) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig(c.dsn)
	if err != nil {
		return nil, ErrDSN // the cause may hold the password
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "formetl"
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, settings).ReadAll(); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // it did nothing yet
		return nil, err
	}
	return conn, nil
}

// give returns a connection. One that is broken or within a transaction is closed.
func (c *connections) give(conn *pgconn.PgConn) {
	c.mu.Lock()
	keep := !conn.IsClosed() && !conn.IsBusy() && conn.TxStatus() == 'I' && len(c.free) < mostIdle
	if keep {
		c.free = append(c.free, idle{conn, time.Now()})
	}
	c.mu.Unlock()
	if !keep {
		_ = conn.Close(context.Background()) // nothing depends on how it ends
	}
}

// close closes the connections that are free.
func (c *connections) close(ctx context.Context) {
	c.mu.Lock()
	free := c.free
	c.free = nil
	c.mu.Unlock()
	for _, f := range free {
		_ = f.conn.Close(ctx) // nothing depends on how it ends
	}
}

// session is one connection in use for the destination's table.
type session struct {
	tables.Session
	conn *pgconn.PgConn
}

func newSession(conn *pgconn.PgConn, t tables.Table) *session {
	return &session{tables.Session{Queries: queries{conn}, Dialect: dialect(), Table: t}, conn}
}

// queries are the statements of a connection.
type queries struct{ conn *pgconn.PgConn }

// Query does one statement and returns its rows as texts.
func (q queries) Query(ctx context.Context, sql string, args ...any) ([][][]byte, error) {
	return q.read(ctx, nil, sql, args...)
}

// QueryBytes is Query with results in the binary format, which bytea has as they are.
func (q queries) QueryBytes(ctx context.Context, sql string, args ...any) ([][][]byte, error) {
	return q.read(ctx, []int16{1}, sql, args...)
}

func (q queries) read(ctx context.Context, formats []int16, sql string, args ...any) ([][][]byte, error) {
	values, binary := parameters(args)
	result := q.conn.ExecParams(ctx, sql, values, nil, binary, formats).Read()
	return result.Rows, result.Err
}

// Exec does one statement and returns how many rows it changed.
func (q queries) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	values, binary := parameters(args)
	result := q.conn.ExecParams(ctx, sql, values, nil, binary, nil).Read()
	return result.CommandTag.RowsAffected(), result.Err
}

// Script does several statements without parameters.
func (q queries) Script(ctx context.Context, sql string) error {
	_, err := q.conn.Exec(ctx, sql).ReadAll()
	return err
}

// parameters encodes the parameters of a statement: texts, numbers, nil, lists, and bytes as
// they are.
func parameters(args []any) (values [][]byte, binary []int16) {
	values, binary = make([][]byte, len(args)), make([]int16, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case nil:
		case []byte:
			values[i], binary[i] = append([]byte{}, a...), 1
		case int64:
			values[i] = strconv.AppendInt(nil, a, 10)
		case []string:
			values[i] = textArray(a)
		default:
			values[i] = fmt.Append([]byte{}, a) // an empty text is no null
		}
	}
	return values, binary
}

// textArray returns a list as the text of an array.
func textArray(list []string) []byte {
	b := []byte{'{'}
	for i, text := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		for _, c := range []byte(text) {
			if c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
		b = append(b, '"')
	}
	return append(b, '}')
}

// atomically calls do within a transaction.
func (s *session) atomically(ctx context.Context, do func() error) error {
	return s.Atomically(ctx, do, func() { s.rollback(ctx) })
}

// rollback ends a transaction without its effects. If that fails the connection is closed,
// which has the same end.
func (s *session) rollback(ctx context.Context) {
	if s.conn.IsClosed() || s.Script(context.WithoutCancel(ctx), "ROLLBACK") != nil {
		_ = s.conn.Close(context.WithoutCancel(ctx)) // the server ends the transaction
	}
}

// locks keeps two transactions of the same table and purpose apart until the first one ends.
func (s *session) locks(ctx context.Context, purpose string) error {
	_, err := s.Query(ctx, "SELECT pg_advisory_xact_lock($1)", lockNumber(s.Table, purpose))
	return err
}

// committing is the purpose of the lock of a commit.
const committing = "commit"
