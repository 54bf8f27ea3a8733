//go:build duckdb

package duckdb

import (
	"errors"

	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// FormatName is the name of the format in manifests.
const FormatName = "duckdb"

// Format describes the bytes of rows, which the destination takes. No file has this format.
func Format() load.Format { return dialect().Format() }

// dialect is DuckDB's. A table has no primary key: DuckDB would check it before a transaction
// ends, which deletes and inserts rows with the same ids.
func dialect() *tables.Dialect {
	return &tables.Dialect{
		Name: FormatName, Product: "DuckDB",
		Types: tables.Types{
			Integer: "BIGINT", Float: "DOUBLE", Boolean: "BOOLEAN", Date: "DATE",
			Timestamp: "TIMESTAMP WITH TIME ZONE", Text: "VARCHAR", Decimal: "DECIMAL(%d,%d)",
		},
		IgnoresCase: true, Key: "NOT NULL", AltersFirst: true,
		Columns: "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = current_database() " +
			"AND lower(schema_name) = lower($1) AND lower(table_name) = lower($2) ORDER BY column_index",
		NoTable: noTable,
	}
}

// noTable tells whether a statement failed because a table or its schema is missing.
func noTable(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Type == driver.ErrorTypeCatalog
}

// ownTables creates formetl's own tables, and the schema.
const ownTables = `
	CREATE SCHEMA IF NOT EXISTS SCHEMA_;
	CREATE SEQUENCE IF NOT EXISTS SCHEMA_."_formetl_versions";
	CREATE TABLE IF NOT EXISTS SCHEMA_."_formetl_objects" (
		table_name text NOT NULL, name text NOT NULL, version bigint NOT NULL DEFAULT nextval('SEQUENCE_'), bytes bigint NOT NULL, data blob,
		sha256 text, rows bigint, columns text, written_at timestamptz NOT NULL DEFAULT now(),
		PRIMARY KEY (table_name, name));
	CREATE TABLE IF NOT EXISTS SCHEMA_."_formetl_ids" (table_name text NOT NULL, id bigint NOT NULL, part_from timestamp, part bigint NOT NULL, place bigint NOT NULL);
	CREATE TABLE IF NOT EXISTS SCHEMA_."_formetl_runs" (
		table_name text NOT NULL, run_id text NOT NULL, committed_at timestamptz NOT NULL DEFAULT now(), pipeline text NOT NULL, form text NOT NULL,
		range_from timestamp, range_to timestamp, watermark timestamp, rows bigint NOT NULL, rejected bigint NOT NULL,
		PRIMARY KEY (table_name, run_id));
`
