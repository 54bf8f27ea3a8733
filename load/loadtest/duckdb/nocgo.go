//go:build !cgo

package duckdb

import (
	"database/sql"
	"math/big"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// Open ends the test: DuckDB is a library in C++.
func Open(t testing.TB, _ string) *sql.DB {
	t.Helper()
	needs.Missing(t, "DuckDB", "apt-get install gcc g++ libc6-dev, and CGO_ENABLED=1")
	return nil
}

// Decimal stands for the driver's type, of which no value comes.
type Decimal struct {
	Scale uint8
	Value *big.Int
}
