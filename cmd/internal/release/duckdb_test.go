package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/schemas"
)

// duck opens a DuckDB in memory, in a time zone that is not the service's.
func duck(t *testing.T) *sql.DB {
	t.Helper()
	return duckdb.Open(t, "Asia/Kolkata")
}

func duckRun(t *testing.T, db *sql.DB, script string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatalf("DuckDB: %v\n%s", err, numbered(script))
	}
}

func duckLines(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("DuckDB: %v\n%s", err, query)
	}
	defer func() { _ = rows.Close() }()
	var out strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		out.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// cellsOf is a query that gives each row as a JSON array of texts, in the order
// of ids. Instants are microseconds, lists JSON arrays of texts.
func cellsOf(columns []schemas.Column, source, id string) string {
	cells := make([]string, 0, len(columns))
	for _, c := range columns {
		name := quote(c.Name)
		switch c.Type.Kind {
		case schemas.Timestamp:
			name = "epoch_us(" + name + ")"
		case schemas.List:
			name = "to_json(" + name + "::VARCHAR[])"
		}
		cells = append(cells, name+"::VARCHAR")
	}
	return "SELECT to_json([" + strings.Join(cells, ", ") + "])::VARCHAR FROM " + source + " ORDER BY " + quote(id)
}

// decode reads lines of cellsOf. Lists are decoded, so that how an engine
// spells JSON makes no difference.
func decode(t *testing.T, columns []schemas.Column, lines string) [][]any {
	t.Helper()
	var rows [][]any
	for line := range strings.Lines(lines) {
		var texts []*string
		if err := json.Unmarshal([]byte(line), &texts); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		row := make([]any, len(texts))
		for i, text := range texts {
			if text == nil {
				continue
			}
			row[i] = *text
			switch columns[i].Type.Kind {
			case schemas.List:
				var list []any
				if err := json.Unmarshal([]byte(*text), &list); err != nil {
					t.Fatalf("%v: %s", err, *text)
				}
				row[i] = list
			case schemas.Float64:
				var f float64
				if _, err := fmt.Sscan(*text, &f); err != nil {
					t.Fatal(err)
				}
				row[i] = f
			}
		}
		rows = append(rows, row)
	}
	return rows
}
