//go:build cgo

package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2" // the engine of this anchor
)

// toParquet has DuckDB turn a CSV file into a Parquet file, on one thread.
func toParquet(ctx context.Context, from, to string) error {
	db, err := sql.Open("duckdb", "?threads=1")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the file is written by then
	quote := func(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }
	_, err = db.ExecContext(ctx, fmt.Sprintf("COPY (SELECT * FROM read_csv(%s)) TO %s (FORMAT parquet, COMPRESSION zstd)", quote(from), quote(to)))
	return err
}
