//go:build duckdb

package built

import (
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/duckdb"
	"github.com/formetl/formetl/pipelines/definition"
)

// fileDatabases are the databases that are files of this host. DuckDB needs cgo, so the plain
// program has none.
func fileDatabases() []database {
	return []database{{
		kind:   definition.DatabaseKind{Name: duckdb.FormatName, Schema: "main", InFile: true, Address: duckdb.Address},
		scheme: duckdb.Scheme, format: duckdb.Format(),
		open: func(root string, _ *definition.Database) (load.Destination, error) { return duckdb.New(root) },
	}}
}
