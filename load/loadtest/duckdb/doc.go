// Package duckdb opens DuckDB for tests that read with it what was written.
// Without cgo such a test is skipped, as package needs tells. Only tests import
// it. Begin reading with Open.
package duckdb
