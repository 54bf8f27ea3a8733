package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas/ddl"
)

// sameNames makes the table in both engines and compares its columns' names and
// comments with those asked for.
func sameNames(t *testing.T, table ddl.Table) {
	t.Helper()
	want := make([]string, 0, len(table.Columns))
	for _, c := range table.Columns {
		want = append(want, c.Name)
	}
	db, name := duck(t), database(t)
	for dialect, names := range map[string]func(sql string) string{
		"duckdb": func(sql string) string {
			duckRun(t, db, "BEGIN; "+sql+"COMMIT;")
			return duckLines(t, db, "SELECT to_json(list(column_name ORDER BY column_index))::VARCHAR FROM duckdb_columns() WHERE comment IS NOT NULL AND NOT internal")
		},
		"postgres": func(sql string) string {
			psql(t, name, sql)
			return psql(t, name, "SELECT json_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid = '"+quote(table.Name[0])+"'::regclass AND attnum > 0 AND col_description(attrelid, attnum) IS NOT NULL")
		},
	} {
		sql, err := ddl.Named(dialect).Create(table)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal([]byte(names(sql)), &got); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%s: the table's columns are\n%q, want\n%q", dialect, got, want)
		}
	}
}
