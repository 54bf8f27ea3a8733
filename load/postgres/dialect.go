package postgres

import (
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
)

// FormatName is the name of the format in manifests.
const FormatName = "postgres"

// Format describes the bytes of rows, which the destination takes. No file has this format.
func Format() load.Format { return dialect().Format() }

// dialect is PostgreSQL's. The server cuts off names that are longer.
func dialect() *tables.Dialect {
	return &tables.Dialect{
		Name: FormatName, Product: "PostgreSQL",
		Types: tables.Types{
			Integer: "bigint", Float: "double precision", Boolean: "boolean", Date: "date",
			Timestamp: "timestamp with time zone", Text: "text", Decimal: "numeric(%d,%d)",
		},
		MaxName: 63, MaxColumns: 1600,
		Reserved: []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"},
		Columns: "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace " +
			"WHERE nspname = $1 AND relname = $2 AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
		NoTable: noTable,
	}
}
