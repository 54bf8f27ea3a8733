package pipelines_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// hostileForm has every hostile value as a text, as a member of a list, and
// as a meta, besides missing and empty answers.
func hostileForm() *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Same label"},
		{ID: "353-0-0", Type: "text", Index: 2, Label: "Same label"},
		{ID: "7", Type: "checkbox", Index: 3, Label: ""},
		{ID: "12", Type: "text", Index: 4, Label: "Line\nbreak "},
	}
	results := make([]formservice.Result, 0, len(formservice.Hostile()))
	for i, v := range formservice.Hostile() {
		r := formservice.Result{
			ID: int64(1000 - 3*i), // dates rise while ids fall
			Metas: []formservice.Meta{
				{ID: "result_status", Value: "Complete"},
				{ID: "user_browser", Value: v},
				{ID: "date_finish", Value: time.Date(2026, 3, 1, 0, i*17, 0, 0, time.UTC).Format("2006-01-02 15:04:05")},
			},
			Items: []formservice.Answer{
				{ID: "1", Values: []string{v}},
				{ID: "7", Values: []string{v, "plain", v}},
			},
		}
		switch i % 4 {
		case 0:
			r.Items = append(r.Items, formservice.Answer{ID: "353-0-0", Values: []string{""}})
		case 1:
			r.Items = append(r.Items, formservice.Answer{ID: "353-0-0", Values: []string{v + v}})
		case 2: // several items of one id are one list
			r.Items = append(r.Items, formservice.Answer{ID: "7", Values: []string{v}}, formservice.Answer{ID: "12", Values: []string{v}})
		}
		results = append(results, r)
	}
	f := formservice.NewForm("form1", items, results)
	f.Metas = []string{"result_status", "user_browser", "date_finish"}
	return f
}

// TestDuckDBReadsWhatARunWrote reads every format back with a real engine and
// compares every value with the truth.
func TestDuckDBReadsWhatARunWrote(t *testing.T) {
	db := duckdb.Open(t)
	if _, err := db.ExecContext(t.Context(), "SET TimeZone = 'America/Chicago'"); err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]*formservice.Form{"hostile": hostileForm(), "generated": generated(800)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, form)
			w.run(w.definition(
				definition.Output{Path: "f.parquet", Format: "parquet"},
				definition.Output{Path: "f.ndjson", Format: "ndjson"},
				definition.Output{Path: "f.json", Format: "json"},
				definition.Output{Path: "f.csv.gz", Format: "csv", Compression: "gzip"},
				definition.Output{Path: "days/", Format: "parquet", Partition: definition.PartitionDay},
				definition.Output{Path: "text/", Format: "csv", Partition: definition.PartitionMonth}))
			schema := readManifest(t, w.path("f.parquet.manifest.json")).Schema
			all := pipelinestest.Truth(form, nil)
			q := func(pattern string) string { return "'" + strings.ReplaceAll(w.path(pattern), "'", "''") + "'" }
			csv := "header=true, delim=',', quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, auto_detect=false, strict_mode=true, columns=" + shape(schema, true)
			for _, source := range []string{
				"read_parquet(" + q("f.parquet") + ")",
				"read_json(" + q("f.ndjson") + ", format='newline_delimited', columns=" + shape(schema, false) + ")",
				"read_json(" + q("f.json") + ", format='array', columns=" + shape(schema, false) + ")",
				"read_csv(" + q("f.csv.gz") + ", " + csv + ")",
				"read_parquet(" + q("days/**/*.parquet") + ", hive_partitioning=false, union_by_name=true)",
				"read_csv(" + q("text/**/*.csv") + ", " + csv + ", hive_partitioning=false)",
			} {
				rows := queryRows(t, db, schema, source)
				w.compareEngine(source, rows, schema, all, strings.HasPrefix(source, "read_csv"))
			}
		})
	}
}

// shape is the columns argument of DuckDB's readers.
func shape(schema []load.Column, text bool) string {
	parts := make([]string, 0, len(schema))
	for _, c := range schema {
		duck := map[string]string{"int64": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "list<string>": "VARCHAR[]"}[c.Type]
		if text && duck == "VARCHAR[]" {
			duck = "VARCHAR"
		}
		parts = append(parts, fmt.Sprintf("'%s': '%s'", strings.ReplaceAll(c.Name, "'", "''"), duck))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// queryRows reads a source as JSON objects, by result id.
func queryRows(t *testing.T, db *sql.DB, schema []load.Column, source string) map[int64]map[string]any {
	t.Helper()
	fields := make([]string, 0, len(schema))
	for _, c := range schema {
		name := `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`
		if c.Type == "timestamp" {
			name = "epoch_ms(" + name + ") AS " + name
		}
		fields = append(fields, name)
	}
	rows, err := db.QueryContext(t.Context(), "SELECT to_json(r)::VARCHAR FROM (SELECT "+strings.Join(fields, ", ")+" FROM "+source+") AS r")
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	defer func() { _ = rows.Close() }()
	all := map[int64]map[string]any{}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		id := int64(row["result_id"].(float64))
		if all[id] != nil {
			t.Errorf("%s: result %d is there twice", source, id)
		}
		all[id] = row
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return all
}

func (w *world) compareEngine(source string, rows map[int64]map[string]any, schema []load.Column, want []formservice.Result, text bool) {
	w.t.Helper()
	if len(rows) != len(want) {
		w.t.Errorf("%s: %d rows, want %d", source, len(rows), len(want))
	}
	for _, r := range want {
		for _, c := range schema {
			expected := w.expected(c, r)
			if s, ok := expected.(string); ok && c.Type == "timestamp" {
				at, err := time.Parse(time.RFC3339, s)
				if err != nil {
					w.t.Fatal(err)
				}
				expected = float64(at.UnixMilli())
			}
			if list, ok := expected.([]any); ok && text {
				expected = joined(list)
			}
			if got := rows[r.ID][c.Name]; !reflect.DeepEqual(got, expected) {
				w.t.Errorf("%s: result %d, column %s: %q, want %q", filepath.Base(source), r.ID, c.Name, got, expected)
			}
		}
	}
}

// joined is a list as contract.md has it in CSV.
func joined(list []any) string {
	parts := make([]string, 0, len(list))
	for _, v := range list {
		parts = append(parts, strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(v.(string)))
	}
	return strings.Join(parts, "|")
}
