package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

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
