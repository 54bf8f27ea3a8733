package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// everyType is a schema with every type, and names and labels that break what
// is not quoted right.
const everyType = `version: 1
name: warehouse
columns:
  - {name: id, from: result_id, type: int64}
  - {name: select, from: "item:1", type: string, label: "It's \"quoted\"; DROP TABLE x; -- \\ and\nlines"}
  - {name: order, from: "item:2", type: int64, label: "*/ $$ /* {x} %s"}
  - {name: user, from: "item:3", type: "decimal(38,10)", label: "\u202Eright to left"}
  - {name: "Größe \"in\" cm", from: "item:4", type: float64}
  - {name: "with blank", from: "item:5", type: bool}
  - {name: "Дата", from: "item:6", type: date}
  - {name: date_finish, from: "meta:date_finish", type: timestamp, nullable: false}
  - {name: "a'b\\c", from: "item:7", type: "list<string>"}
  - {name: "table", from: "item:8", type: "list<int64>"}
  - {name: "lists.of.decimals", from: "item:9", type: "list<decimal(7,2)>"}
  - {name: "%", from: "item:10", type: "list<date>"}
  - {name: "name_of_sixty_three_bytes_which_is_the_most_that_postgresql_has", from: "item:11", type: "list<bool>"}
  - {name: "browser", from: "meta:user_browser", type: string}
unknown: ignore
`

// everyValue is a form whose results have the hostile texts, the ends of each
// type, and answers that are missing or empty.
func everyValue() *formservice.Form {
	var items []formservice.Item
	for i := 1; i <= 11; i++ {
		items = append(items, formservice.Item{ID: fmt.Sprint(i), Type: "text", Index: i, Label: fmt.Sprintf("Question %d", i)})
	}
	pick := func(values []string, i int) string { return values[i%len(values)] }
	hostile := append(formservice.Hostile(), "|", `\`, `\N`, "a|b", `a\|b`, "\\.", "#x", " x ", "NULL", "null", "{}", `{"a":[1]}`, "\n", "\"")
	var results []formservice.Result
	for i, v := range hostile {
		r := formservice.Result{ID: int64(1 + i), Metas: []formservice.Meta{
			{ID: "result_status", Value: "Complete"},
			{ID: "user_browser", Value: v},
			{ID: "date_finish", Value: fmt.Sprintf("2026-01-%02d %02d:30:07", 1+i%5, i%24)},
		}}
		add := func(id string, values ...string) {
			r.Items = append(r.Items, formservice.Answer{ID: id, Values: values})
		}
		add("1", v)
		add("7", v, "plain", `\N`, v)
		if i%7 == 3 { // nothing else was answered
			results = append(results, r)
			continue
		}
		if i%7 == 5 { // empty answers
			for id := 2; id <= 11; id++ {
				add(fmt.Sprint(id), "")
			}
			results = append(results, r)
			continue
		}
		add("2", pick([]string{"0", "-1", "9223372036854775807", "-9223372036854775808"}, i))
		add("3", pick([]string{"0", "-0.5", "9999999999999999999999999999.9999999999", "1.0000000001"}, i))
		add("4", pick([]string{"0", "1.5", "1e300", "-2.2250738585072014e-308", "0.1"}, i))
		add("5", pick([]string{"true", "false"}, i))
		add("6", pick([]string{"0001-01-01", "1969-12-31", "2026-02-28", "9999-12-31"}, i))
		add("8", "1", "-9223372036854775808", "3")
		add("9", "1.50", "-99999.99")
		add("10", "2026-01-01", "1969-12-31")
		add("11", "true", "false")
		results = append(results, r)
	}
	f := formservice.NewForm("form1", items, results)
	f.Metas = []string{"result_status", "user_browser", "date_finish"}
	return f
}

// TestViewsShowEqualData runs exactly what the command prints, twice, and compares each
// cell of the view with the Parquet file that another definition wrote.
func TestViewsShowEqualData(t *testing.T) {
	w := newWorld(t, everyValue())
	schema, err := definition.LoadSchema(w.write("form.schema.yaml", everyType), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.define("truth", "{path: truth/f.parquet}")
	db := duck(t)
	truth := decode(t, schema.Columns, duckLines(t, db, cellsOf(schema.Columns, "'"+filepath.Join(w.dir, "truth/f.parquet")+"'", "id")))
	if len(truth) != len(truthIDs(w.form)) {
		t.Fatalf("the Parquet file holds %d rows, want %d", len(truth), len(truthIDs(w.form)))
	}
	for i, output := range []string{
		"{path: out/f.csv}", "{path: out/f.csv.gz}", "{path: out/f.csv.zst}", "{path: out/f.ndjson}", "{path: out/f.ndjson.gz}",
		"{path: \"out/it's (x) [1]/\", format: csv, partition: day}",
		"{path: parts/, format: csv, compression: gzip, partition: month}", "{path: lines/, format: ndjson, partition: day}",
		"{path: out/f.json}", "{path: out/f.parquet}", "{path: lake/, format: parquet, partition: day}", "{path: \"flat [a] *?/\", format: parquet}",
		"{path: lake2/, format: ndjson}, {path: out/range.parquet}",
	} {
		t.Run(strings.ReplaceAll(output, "/", ":"), func(t *testing.T) {
			w := &world{t: t, url: w.url, dir: w.dir, form: w.form}
			script := w.formetl("schema", "ddl", w.define(fmt.Sprintf("duckdb%d", i), output), "--dialect", "duckdb")
			db := duck(t)
			for range 2 {
				duckRun(t, db, script)
				sameRows(t, schema.Columns, truth, decode(t, schema.Columns, duckLines(t, db, cellsOf(schema.Columns, `"form1"`, "id"))))
			}
		})
	}
}

// TestTablesHaveTheirTypes makes a table in each engine, twice, and asks the engine for its
// columns' types.
func TestTablesHaveTheirTypes(t *testing.T) {
	w := newWorld(t, everyValue())
	file := w.write("form.schema.yaml", everyType)
	name, db := database(t), duck(t)
	script := w.formetl("schema", "ddl", file, "--dialect", "postgres", "--table", "warehouse")
	psql(t, name, script+script)
	got := strings.Fields(psql(t, name, "SELECT replace(format_type(atttypid, atttypmod), ' ', '_') || CASE WHEN attnotnull THEN '!' ELSE '' END FROM pg_attribute WHERE attrelid = 'warehouse'::regclass AND attnum > 0 ORDER BY attnum"))
	want := strings.Fields(`bigint! text bigint numeric(38,10) double_precision boolean date timestamp_with_time_zone! text[] bigint[] numeric(7,2)[] date[] boolean[] text`)
	if !slices.Equal(got, want) {
		t.Errorf("PostgreSQL has\n%q, want\n%q", got, want)
	}
	script = w.formetl("schema", "ddl", file, "--dialect", "duckdb", "--table", "warehouse")
	duckRun(t, db, script+script)
	got = strings.Fields(duckLines(t, db, "SELECT replace(data_type, ' ', '_') || CASE WHEN is_nullable THEN '' ELSE '!' END FROM duckdb_columns() WHERE table_name = 'warehouse' ORDER BY column_index"))
	want = strings.Fields(`BIGINT! VARCHAR BIGINT DECIMAL(38,10) DOUBLE BOOLEAN DATE TIMESTAMP_WITH_TIME_ZONE! VARCHAR[] BIGINT[] DECIMAL(7,2)[] DATE[] BOOLEAN[] VARCHAR`)
	if !slices.Equal(got, want) {
		t.Errorf("DuckDB has\n%q, want\n%q", got, want)
	}
}

func truthIDs(f *formservice.Form) []int64 {
	var ids []int64
	f.Each(func(r formservice.Result) bool {
		ids = append(ids, r.ID)
		return true
	})
	return ids
}

// sameRows compares cell by cell.
func sameRows(t *testing.T, columns []schemas.Column, want, got [][]any) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		for c := range want[i] {
			if !reflect.DeepEqual(want[i][c], got[i][c]) {
				t.Errorf("row %d, column %q: got %#v, want %#v", i+1, columns[c].Name, got[i][c], want[i][c])
			}
		}
	}
}
