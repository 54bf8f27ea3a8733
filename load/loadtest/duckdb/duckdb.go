//go:build cgo

package duckdb

import (
	"database/sql"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// Open returns a database in memory. It is closed when the test ends.
func Open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Decimal is a decimal as the driver gives it.
type Decimal = duckdb.Decimal
