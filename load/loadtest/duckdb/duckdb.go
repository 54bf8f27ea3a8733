//go:build cgo

package duckdb

import (
	"database/sql"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// Open returns a database in memory that shows times in a zone, such as "UTC". All of its
// statements run in one session. It is closed when the test ends.
func Open(t testing.TB, zone string) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "SET TimeZone = '"+zone+"'"); err != nil {
		t.Fatal(err)
	}
	return db
}

// Decimal is a decimal as the driver gives it.
type Decimal = duckdb.Decimal
