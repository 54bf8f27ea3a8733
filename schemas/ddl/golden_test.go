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

// lake is a dataset as a run leaves it.
func lake(t testing.TB, path, format string) ddl.Written {
	return ddl.Written{
		Path: path, Format: format, Hive: true, Known: true,
		Columns: everyType(t, true).Columns,
		Parts: []ddl.Part{
			{Path: "dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000." + format, Bytes: 1234, Rows: 7, Leading: 13},
			{Path: "dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000." + format, Bytes: 99, Rows: 2, Leading: 5},
		},
	}
}

// variants are the outputs that the golden files show.
func variants(t testing.TB) map[string]ddl.Written {
	file := lake(t, "/srv/it's/f.csv.gz", "csv")
	file.Compression, file.Hive, file.Parts = "gzip", false, []ddl.Part{{Bytes: 7, Rows: 9}}
	lines := lake(t, "s3://bucket/lines/form 1/", "ndjson")
	lines.Endpoint, lines.Region = "https://s3.example.com", "eu-west-1"
	none := lake(t, "s3://bucket/lake/form1/", "parquet")
	none.Parts = nil
	return map[string]ddl.Written{
		"parquet in s3": lake(t, "s3://bucket/lake/form1/", "parquet"), "parquet here": lake(t, "/srv/lake/", "parquet"),
		"ndjson in s3": lines, "csv here": file, "no parts": none,
		"no run yet": {Path: "s3://bucket/lake/form1/", Format: "parquet", Hive: true},
	}
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
	for _, name := range []string{"parquet in s3", "parquet here", "ndjson in s3", "csv here", "no parts", "no run yet"} {
		for _, glob := range []bool{false, true} {
			w := variants(t)[name]
			if glob && (!w.Known || !w.Dataset()) {
				continue
			}
			load, err := d.Load(table, []ddl.Written{w}, ddl.Options{Glob: glob})
			if err != nil {
				t.Fatal(err)
			}
			if glob {
				name += ", by a pattern"
			}
			out.WriteString("\n-- " + strings.ToUpper(name) + "\n" + load)
		}
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
