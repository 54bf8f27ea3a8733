package ddl

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/formetl/formetl/schemas"
)

// Dialects returns all dialects of SQL that formetl writes.
func Dialects() []*Dialect {
	return []*Dialect{duckDB(), postgres(), snowflake(), bigQuery(), redshift()}
}

func duckDB() *Dialect {
	return &Dialect{
		Name: "duckdb", quote: doubled(`"`), text: doubled("'"),
		types: types{
			text: "VARCHAR", integer: "BIGINT", float: "DOUBLE", boolean: "BOOLEAN", date: "DATE",
			timestamp: "TIMESTAMP WITH TIME ZONE", decimal: "DECIMAL(%d, %d)", list: "%s[]",
		},
		// The table has no primary key. DuckDB checks keys before a transaction ends, so one
		// transaction could not delete and load the same ids.
		constraint: notNull,
	}
}

func postgres() *Dialect {
	return &Dialect{
		Name: "postgres", quote: doubled(`"`), text: doubled("'"),
		limit: limits{
			columns: 1600, bytes: 63,
			reserved: []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"},
		},
		types: types{
			text: "text", integer: "bigint", float: "double precision", boolean: "boolean", date: "date",
			timestamp: "timestamptz", decimal: "numeric(%d, %d)", list: "%s[]",
		},
		keys: true,
		constraint: func(t Table, c schemas.Column) string {
			if c.From.Kind == schemas.FromResultID && t.Key == 0 {
				return " PRIMARY KEY"
			}
			return notNull(t, c)
		},
	}
}

func snowflake() *Dialect {
	return &Dialect{
		Name: "snowflake", quote: doubled(`"`), text: doubledEscaped, limit: limits{runes: 255, scale: 37},
		// An instant is TIMESTAMP_LTZ, which is stored in UTC. Snowflake reads
		// Parquet's instants as this type. TIMESTAMP_TZ would keep an offset that nobody
		// gave, and TIMESTAMP_NTZ would lose that it is an instant.
		types: types{
			text: "VARCHAR", integer: "BIGINT", float: "DOUBLE", boolean: "BOOLEAN", date: "DATE",
			timestamp: "TIMESTAMP_LTZ(6)", decimal: "NUMBER(%d, %d)", list: "ARRAY",
		},
		constraint: notNull, columnComment: " COMMENT %s", tableComment: " COMMENT = %s",
	}
}

func bigQuery() *Dialect {
	return &Dialect{
		Name: "bigquery", quote: backslashed("`"), text: backslashed("'"),
		limit: limits{columns: 10_000, runes: 300, problem: bigQueryName},
		types: types{
			text: "STRING", integer: "INT64", float: "FLOAT64", boolean: "BOOL", date: "DATE", timestamp: "TIMESTAMP",
			decimal: "NUMERIC(%d, %d)", wide: "BIGNUMERIC(%d, %d)", list: "ARRAY<%s>",
		},
		constraint: func(t Table, c schemas.Column) string {
			if c.Type.Kind == schemas.List { // an array is never null in BigQuery
				return ""
			}
			return notNull(t, c)
		},
		columnComment: " OPTIONS (description = %s)", tableComment: "\nOPTIONS (description = %s)",
	}
}

// bigQueryName returns why BigQuery refuses a column's name, or "". It follows
// BigQuery's rules for flexible column names.
func bigQueryName(name string) string {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER", "_CHANGE_SEQUENCE_NUMBER", "_CHANGE_TYPE", "_CHANGE_TIMESTAMP"} {
		if strings.HasPrefix(upper, prefix) {
			return "begins with " + prefix + ", which BigQuery reserves"
		}
	}
	for _, r := range name {
		if !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Pc, unicode.Pd) && !strings.ContainsRune("&%=+:'<>#| ", r) {
			return fmt.Sprintf("contains %q, which BigQuery does not allow in the name of a column", r)
		}
	}
	return ""
}

func redshift() *Dialect {
	return &Dialect{
		Name: "redshift", quote: doubled(`"`), text: doubledEscaped,
		limit: limits{
			columns: 1600, bytes: 127, scale: 37,
			reserved: []string{"oid", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "deletexid", "insertxid"},
		},
		types: types{
			text: "VARCHAR(65535)", integer: "BIGINT", float: "DOUBLE PRECISION", boolean: "BOOLEAN", date: "DATE",
			timestamp: "TIMESTAMPTZ", decimal: "DECIMAL(%d, %d)", list: "SUPER",
		},
		constraint: notNull,
	}
}
