package ddl_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everyType is a table with every type, with names and labels that break what
// is not quoted right. plain leaves out the names that BigQuery refuses.
func everyType(t testing.TB, plain bool) ddl.Table {
	t.Helper()
	column := func(name, from, kind, label string) schemas.Column {
		source, err := schemas.ParseSource(from)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := schemas.ParseType(kind)
		if err != nil {
			t.Fatal(err)
		}
		return schemas.Column{Name: name, From: source, Type: parsed, Label: label}
	}
	table := ddl.Table{Name: []string{"forms", "feedback"}, Comment: "It's a form; -- \\ */", Columns: []schemas.Column{
		column("id", "result_id", "int64", ""),
		column("select", "item:1", "string", "It's \"quoted\" `so`; DROP TABLE x; -- \\' and\r\nlines\x00"),
		column("order", "item:2", "int64", "*/ $$ /* {x} %s \u202Eright to left"),
		column("group", "item:3", "decimal(38,10)", "Цвет 你"),
		column("narrow", "item:4", "decimal(12,2)", ""),
		column("float", "item:5", "float64", strings.Repeat("long ", 400)),
		column("bool", "item:6", "bool", "Yes?"),
		column("date", "item:7", "date", ""),
		column("finished at", "meta:date_finish", "timestamp", "Date finish"),
		column("list", "item:8", "list<string>", ""),
		column("numbers", "item:9", "list<decimal(7,2)>", ""),
		column("instants", "item:10", "list<timestamp>", ""),
		column("Größe", "item:11", "string", ""),
	}}
	table.Columns[8].Required = true
	table.Columns[9].Required = true
	if !plain {
		table.Columns = append(table.Columns, column("a'b\"c`d\\e; --\nf", "item:12", "string", ""), column("dropped", "item:13", "string", ""))
		table.Columns[len(table.Columns)-1].PII.Kind = schemas.PIIDrop
	}
	return table
}

// statements is all that a dialect writes of a table.
func statements(t testing.TB, d *ddl.Dialect) string {
	t.Helper()
	table := everyType(t, d.Name == "bigquery")
	var out strings.Builder
	create, err := d.Create(table)
	if err != nil {
		t.Fatal(err)
	}
	out.WriteString(create)
	if d.Name != "duckdb" {
		return out.String()
	}
	for _, files := range []ddl.Files{
		{Path: "s3://bucket/lake/form 1/", Format: "parquet", Extension: ".parquet", Folders: true, Endpoint: "http://127.0.0.1:8535", Region: "eu-1", PathStyle: true},
		{Path: "/srv/it's [a] *?/", Format: "ndjson", Extension: ".ndjson.zst"},
		{Path: "/srv/f.csv.gz", Format: "csv"},
		{Path: "/srv/f.json", Format: "json"},
	} {
		view, err := ddl.View(table, files)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n" + view)
	}
	return out.String()
}

// TestGolden shows what each dialect writes; -update rewrites it.
func TestGolden(t *testing.T) {
	for _, d := range ddl.Dialects() {
		t.Run(d.Name, func(t *testing.T) {
			got, file := statements(t, d), filepath.Join("testdata", d.Name+".sql")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs from what is written now; look at it and run with -update:\n%s", file, got)
			}
		})
	}
}
