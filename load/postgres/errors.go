package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load"
)

// failure says what is at fault when a statement failed, and what the user is told.
type failure struct {
	kind       load.Kind
	what, hint string
}

// states returns the explanations of failures by SQLSTATE, or by its first two characters.
func states() map[string]failure {
	later := "run the same command again later"
	misfit := "find the row in the server's log; then widen the column in the database, or correct its type in the schema"
	rights := "let the administrator of the database give the role the rights; `formetl help databases` shows the statements"
	return map[string]failure{
		"28P01": {load.ErrDenied, "the server refused the password", "correct the password in the dsn, PGPASSWORD or ~/.pgpass"},
		"28":    {load.ErrDenied, "the server refused the role or the password", "check user, password and sslmode in the dsn; if they are right, the server's pg_hba.conf has to let this machine in"},
		"3D000": {load.ErrUnusable, "the database does not exist", "correct the dsn, or create the database; formetl does not create databases"},
		"3F000": {load.ErrUnusable, "the schema does not exist", "create it with CREATE SCHEMA, or correct table: in the definition"},
		"42501": {load.ErrFailed, "the role is not allowed to do this", rights},
		"25006": {load.ErrFailed, "the server is read-only", "use the address of the primary server in the dsn (or target_session_attrs=read-write)"},
		"53":    {load.ErrAway, "the server has run out of connections, memory or disk", "run the same command again later; if it lasts, tell the administrator of the database"},
		"53100": {load.ErrFailed, "the server's disk is full", "free some space on the server; what earlier runs loaded is not lost"},
		"57":    {load.ErrAway, "the server closed the connection", later},
		"08":    {load.ErrAway, "the connection was lost", later},
		"40":    {load.ErrAway, "another transaction was in the way", later},
		"25P03": {load.ErrAway, "the server ended a transaction that was idle for too long", later},
		"55P03": {load.ErrAway, "another session has locked the table", "run the same command again later; if it lasts, let the administrator of the database end that session"},
		"55006": {load.ErrAway, "another session is using the table", "run the same command again later; if it lasts, let the administrator of the database end that session"},
		"57014": {load.ErrAway, "the server stopped the statement because of a timeout", "raise the time for the role (ALTER ROLE … SET statement_timeout = '1h'), and run again"},
		"53400": {load.ErrFailed, "a limit of the server was reached", "raise that limit for the role; what earlier runs loaded is not lost"},
		"0A000": {load.ErrFailed, "something in the database depends on what has to change", "drop what depends on it, run again, and create it anew (the SQL file that after: names can do that)"},
		"22":    {load.ErrFailed, "a value does not fit its column", misfit},
		"22001": {load.ErrFailed, "a text is too long for its column", misfit},
		"22003": {load.ErrFailed, "a number is out of range for its column", misfit},
		"22P05": {load.ErrFailed, "a text has a character that the database's encoding cannot hold", "use a database with the encoding UTF8; the server's log may show the character"},
	}
}

// failed turns an error of the driver into a *load.Error with a Kind, an explanation and a
// hint, which says that op failed on the table. Errors of package load stay unchanged.
func (t *Table) failed(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case explained(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("cannot %s %s: %w", op, t, context.Cause(ctx))
	}
	f, known := explain(err)
	if !known {
		return fmt.Errorf("cannot %s %s: %w", op, t, err)
	}
	return t.refused(op, f, stateOf(err), err)
}

// refused returns the error of op for a failure. state is the SQLSTATE, "" for none.
func (t *Table) refused(op string, f failure, state string, cause error) error {
	r := &load.Refusal{What: f.what, Err: cause} // the text of the cause may hold values of rows
	if state != "" {
		r.Code = "SQLSTATE " + state
	}
	return &load.Error{Kind: f.kind, Op: op, Path: t.String(), Remedy: f.hint, Err: r}
}

// explained tells whether an error says by itself what went wrong: an error of a load.Kind
// with an explanation, or one of the errors that package load declares.
func explained(err error) bool {
	_, told := errors.AsType[*load.Error](err)
	_, manifest := errors.AsType[*load.ManifestError](err)
	_, held := errors.AsType[*load.HeldError](err)
	_, read := errors.AsType[*readError](err)
	return told || manifest || held || read || errors.Is(err, load.ErrConflict) || errors.Is(err, load.ErrNotExist)
}

// stateOf returns the SQLSTATE of an error, "" if the server gave none.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// explain explains an error of the driver. It returns false for other errors.
func explain(err error) (failure, bool) {
	if code := stateOf(err); code != "" {
		known := states()
		f, ok := known[code]
		if !ok {
			f, ok = known[code[:2]]
		}
		e, _ := errors.AsType[*pgconn.PgError](err)
		if ok {
			if f.kind == load.ErrFailed && code[:2] != "22" { // the message holds no value
				f.what += ": " + e.Message
			}
			if e.Routine == "check_enable_rls" {
				f.hint = "a load must see all rows: run ALTER TABLE … NO FORCE ROW LEVEL SECURITY if the role owns the table, or ALTER ROLE … BYPASSRLS"
			}
			return f, true
		}
		hint := "look at the server's log, or ask the administrator of the database"
		if strings.HasPrefix(code, "23") {
			hint = "change that constraint in the database, or the column in the schema; the server's log shows the row"
		}
		return failure{load.ErrFailed, "the server refused: " + e.Message, hint}, true
	}
	return unreachable(err)
}

// unreachable explains why the database gave no answer. A wrong host or certificate stays
// wrong. Any other failure may be temporary.
func unreachable(err error) (failure, bool) {
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, isCert := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, otherHost := errors.AsType[x509.HostnameError](err)
	_, isConnect := errors.AsType[*pgconn.ConnectError](err)
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, ErrDSN):
		return failure{load.ErrUnusable, "the dsn cannot be read", "write it like postgres://user@host:5432/database?sslmode=verify-full"}, true
	case isDNS && dns.IsNotFound:
		return failure{load.ErrUnusable, "the server's host is unknown", "correct the host in the dsn"}, true
	case isCert || unknown || invalid || otherHost:
		return failure{load.ErrUnusable, "the server's certificate is not trusted", "name the file with its root certificate (sslrootcert=FILE in the dsn, or the variable PGSSLROOTCERT), or correct the host"}, true
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return failure{load.ErrUnusable, "the server does not support TLS", "turn on TLS on the server, or choose another sslmode in the dsn"}, true
	case isNet && netErr.Timeout():
		return failure{load.ErrAway, "the server did not answer in time", "check the host and the network, and run the same command again later"}, true
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pgconn.ErrConnClosed):
		return failure{load.ErrAway, "the server cannot be reached, or the connection was lost", "check the host and the network, and run the same command again later"}, true
	case isConnect:
		return failure{load.ErrAway, "the connection failed", "check the dsn and the network, and run the same command again later"}, true
	}
	return failure{}, false
}

// noTable tells whether a statement failed because a table or its schema is missing.
func noTable(err error) bool {
	code := stateOf(err)
	return code == "42P01" || code == "3F000"
}
