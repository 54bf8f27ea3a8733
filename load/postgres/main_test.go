package postgres

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/pgserver"
)

// server is the PostgreSQL of all tests of the package.
var server *pgserver.Server

func TestMain(m *testing.M) {
	var run func() int
	server, run = pgserver.Main(m)
	os.Exit(run())
}

// open gives a destination at a table of a database.
func open(t testing.TB, database, table string) *Destination {
	t.Helper()
	return openBy(t, server.DSN(database, "sslmode=disable"), table)
}

func openBy(t testing.TB, dsn, table string) *Destination {
	t.Helper()
	address, err := Address(dsn)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(dsn, address+"/"+table+"/")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// query runs a statement as the superuser, and gives what psql printed.
func query(t testing.TB, database, sql string) string {
	t.Helper()
	out, err := server.Query(database, sql)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// names lists all that lies at a table: objects, what is staged, and leases.
func names(t testing.TB, database, name string) []string {
	t.Helper()
	if query(t, database, "SELECT to_regclass('forms._formetl_leases')") == "" {
		return nil
	}
	found := query(t, database, `SELECT name FROM forms._formetl_objects WHERE table_name = '`+name+`'
		UNION ALL SELECT '.formetl/staged-' || id FROM forms._formetl_staged WHERE table_name = '`+name+`'
		UNION ALL SELECT '.formetl/lease-' || md5(scope) FROM forms._formetl_leases WHERE table_name = '`+name+`'
		UNION ALL SELECT '.formetl/' || relname FROM pg_class c WHERE relname LIKE '\_formetl\_staged\_%' AND relkind = 'r'
			AND NOT EXISTS (SELECT FROM forms._formetl_staged s WHERE '_formetl_' || s.staging = relname)`)
	if found == "" {
		return nil
	}
	list := strings.Split(found, "\n")
	slices.Sort(list)
	return list
}

func TestDestination(t *testing.T) {
	database := server.Database(t)
	number := 0
	loadtest.Destination(t, func(t *testing.T) loadtest.Place {
		number++
		table := fmt.Sprintf("t %d", number)
		return loadtest.Place{
			Open:  func() load.Destination { return open(t, database, "forms."+table) },
			Names: func() []string { return names(t, database, table) },
		}
	})
}
