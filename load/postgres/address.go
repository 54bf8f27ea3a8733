package postgres

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formetl/formetl/load"
)

// Scheme begins the addresses of tables.
const Scheme = "postgres"

// maxIdentifier is how many bytes a name has at most. The server cuts off longer ones.
const maxIdentifier = 63

const defaultPort = 5432

// ErrDSN means that a text is no connection string. The text is not shown, because it may
// hold a password.
var ErrDSN = errors.New("the dsn is no connection string of PostgreSQL, such as postgres://user@host:5432/database?sslmode=verify-full")

// Address returns the address of a database for people, such as postgres://host/database.
// It holds no user and no password.
func Address(dsn string) (string, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return "", ErrDSN // the cause may hold the password
	}
	host := escaped(config.Host)
	if config.Port != 0 && config.Port != defaultPort {
		host += ":" + strconv.Itoa(int(config.Port))
	}
	database := config.Database
	if database == "" {
		database = config.User // as the server does
	}
	return Scheme + "://" + host + "/" + escaped(database), nil
}

// escaped returns a name as one element of an address, without braces.
func escaped(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "%3A", ":") }

// table is a table by its names.
type table struct{ schema, name string }

// parseTable reads the names of a table from its address below that of the database. A
// table's name may hold dots, a schema's may not.
func parseTable(text string) (table, error) {
	schema, name, ok := strings.Cut(text, ".")
	t := table{schema, name}
	problem := ""
	switch {
	case !ok || schema == "" || name == "":
		problem = "needs the name of a schema and a name of its own"
	case len(schema) > maxIdentifier || len(name) > maxIdentifier:
		problem = "has a name of more than 63 bytes, and PostgreSQL cuts off the rest"
	case strings.HasPrefix(name, ownPrefix):
		problem = "has a name that is kept for formetl's own tables"
	case strings.ContainsRune(text, 0):
		problem = "has a name with a NUL character"
	}
	if problem != "" {
		return t, &load.TableError{Table: text, Problem: problem, Hint: "write another table: in the definition, such as forms.feedback"}
	}
	return t, nil
}

// quote quotes a name for SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// String returns the table as SQL names it.
func (t table) String() string { return quote(t.schema) + "." + quote(t.name) }

// own returns one of formetl's tables in the schema, as SQL names it.
func (t table) own(name string) string { return quote(t.schema) + "." + quote(ownPrefix+name) }

// ownPrefix begins the names of formetl's own tables.
const ownPrefix = "_formetl_"
