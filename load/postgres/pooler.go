package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load"
)

// splitError means that a pooler gives a connection another session of the server for each
// transaction. The locks and settings of a session, and what a run stages there, are then
// lost in silence.
type splitError struct{ found string }

// Error says what was found.
func (e *splitError) Error() string { return e.found }

// of is the error for people, with the remedy.
func (e *splitError) of(table string) error {
	return &load.TableError{
		Table: table, Problem: "is reached through a pooler that keeps no session for a connection: " + e.found,
		Hint: "let the dsn lead to the server itself, or to the pooler in session mode (of PgBouncer: pool_mode = session)",
	}
}

// sessionNumber is the number of the session that a transaction meets.
const sessionNumber = "SELECT pg_backend_pid()"

// poolerRounds is how often a pooler is tried. One round tells, unless other clients of the
// pooler take and give back sessions in just that moment.
const poolerRounds = 5

// check returns a *splitError if the connection has no session of the server to itself. A server
// tells a client the number of its session, and poolers tell another one; only then more is
// asked. A second connection holds a transaction open meanwhile. A pooler that lends a session
// for a transaction gives it the one that the first connection had, or the first one another.
func (c *connections) check(ctx context.Context, conn *pgconn.PgConn) error {
	first, err := ask(ctx, conn, sessionNumber)
	if err != nil || first == fmt.Sprint(conn.PID()) {
		return err
	}
	other, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }() // it did nothing
	for range poolerRounds {
		second, err := ask(ctx, other, "BEGIN; "+sessionNumber)
		switch {
		case stateOf(err) == protocolViolation:
			return &splitError{"it allows no transactions of several statements"}
		case err != nil:
			return err
		case second == first:
			return &splitError{fmt.Sprintf("two connections at once have the server's session %s", first)}
		}
		again, err := ask(ctx, conn, sessionNumber)
		if err != nil {
			return err
		}
		if again != first {
			return &splitError{fmt.Sprintf("two transactions of a connection met the server's sessions %s and %s", first, again)}
		}
		if _, err := ask(ctx, other, "ROLLBACK; "+sessionNumber); err != nil {
			return err
		}
	}
	return nil
}

// protocolViolation is what PgBouncer answers in statement mode.
const protocolViolation = "08P01"

// ask does statements and returns the only value of the last one.
func ask(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[len(results)-1].Rows[0][0]), nil
}
