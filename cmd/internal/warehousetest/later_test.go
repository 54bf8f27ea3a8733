package warehousetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
)

// growing is a form whose results of February answer a question that neither
// the form's headings nor the schema know.
func growing() *formservice.Form {
	result := func(id int64, finished string, answers ...string) formservice.Result {
		r := formservice.Result{ID: id, Metas: []formservice.Meta{{ID: "date_finish", Value: finished}}}
		for i, a := range answers {
			r.Items = append(r.Items, formservice.Answer{ID: []string{"1", "2", "99"}[i], Values: strings.Split(a, ";")})
		}
		return r
	}
	f := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}, {ID: "2", Type: "checkbox", Index: 2, Label: "Colours"}}, []formservice.Result{
		result(1, "2026-01-05 09:00:00", "Ada", "red;a,b|\"c\""), result(2, "2026-01-06 09:00:00", "", ""),
		result(3, "2026-02-05 09:00:00", "Grace", "blue", "late"), result(4, "2026-02-06 09:00:00", "x", "red;blue", "later"),
	})
	f.Metas = []string{"date_finish"}
	return f
}

const growingSchema = `version: 1
unknown: add
columns:
  - {name: id, from: result_id, type: int64}
  - {name: done, from: "meta:date_finish", type: timestamp}
  - {name: name, from: "item:1", type: string}
  - {name: colours, from: "item:2", type: "list<string>", list_as: json}
`

// counting gives the rows of a table, its lists' elements and its late values.
const counting = `SELECT count(*) || ' ' || sum(coalesce(array_length(colours, 1), 0)) || ' ' || coalesce(min(item_99), '-') || ' ' || coalesce(max(item_99), '-') || ' ' || coalesce(max(colours[2]), '-') FROM form1`

// engine is one of the two, as the tests of this file use them.
type engine struct {
	run   func(script string) error
	count func() string
}

func engines(t *testing.T, dialect string) *engine {
	t.Helper()
	if dialect == "postgres" {
		name := database(t)
		return &engine{
			run: func(script string) error {
				_, err := tryPsql(t, name, script)
				return err
			},
			count: func() string { return strings.TrimSpace(psql(t, name, counting)) },
		}
	}
	db := duck(t)
	return &engine{
		run: func(script string) error {
			_, err := db.ExecContext(t.Context(), script)
			if err != nil {
				_, _ = db.ExecContext(t.Context(), "ROLLBACK") // where it failed within a transaction
			}
			return err
		},
		count: func() string { return strings.TrimSpace(duckLines(t, db, counting)) },
	}
}

// TestPartsOfSeveralRuns loads a dataset whose older parts lack a column, and
// one that a later run changed.
func TestPartsOfSeveralRuns(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", growingSchema)
	define := func(name, output string) string {
		return w.write(name+".yaml", fmt.Sprintf("version: 1\nname: %s\nsource: {base_url: %q, account: acme, timezone: UTC}\nforms: [form1]\nschema: form.schema.yaml\nextract: {from: 2026-01-01, to: 2026-02-01, window: 1d}\nload: [%s]\n", name, w.url, output))
	}
	for _, c := range []struct {
		dialect, format, flag string
		refused               bool // parts that lack a column are refused
	}{
		{"duckdb", "parquet", "", false},
		{"duckdb", "parquet", "--glob", false},
		{"duckdb", "csv", "", false},
		{"duckdb", "csv", "--glob", false},
		{"duckdb", "ndjson", "--glob", false},
		{"postgres", "ndjson", "", false},
		{"postgres", "csv", "", true},
	} {
		t.Run(c.dialect+" "+c.format+c.flag, func(t *testing.T) {
			w := &world{t: t, url: w.url, dir: w.dir, form: w.form}
			name := c.dialect + c.format + c.flag
			file := define(name, fmt.Sprintf("{path: %s/, format: %s, partition: day}", name, c.format))
			args := []string{"schema", "ddl", file, "--dialect", c.dialect}
			if c.flag != "" {
				args = append(args, c.flag)
			}
			e := engines(t, c.dialect)
			w.formetl("run", file, "--log-level", "error")
			january := w.formetl(args...)
			if err := e.run(january); err != nil {
				t.Fatalf("%v\n%s", err, january)
			}
			w.formetl("run", file, "--log-level", "error", "--from", "2026-02-01", "--to", "2026-03-01")
			if err := e.run(strings.ReplaceAll(w.formetl(append(args, "--only", "table")...), "CREATE TABLE IF NOT EXISTS", "DROP TABLE form1; CREATE TABLE")); err != nil {
				t.Fatal(err)
			}
			both := w.formetl(append(args, "--only", "load")...)
			err := e.run(both)
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "item_99") && !strings.Contains(err.Error(), "header") {
					t.Errorf("a part without a column was loaded by position: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, both)
			}
			if got, want := e.count(), "4 5 late later blue"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if c.flag == "" {
				failsWhole(t, w, e, name, both)
			}
		})
	}
}

// failsWhole takes a part away: the load fails and leaves the table as it was.
func failsWhole(t *testing.T, w *world, e *engine, folder, script string) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(w.dir, folder, "dt=2026-02-06", "part-*"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("no part: %v", err)
	}
	before := e.count()
	if err := os.Remove(parts[0]); err != nil {
		t.Fatal(err)
	}
	if err := e.run(script); err == nil {
		t.Error("a load without one of its parts succeeded")
	}
	if got := e.count(); got != before {
		t.Errorf("a load that failed left %q, before it was %q", got, before)
	}
}

// TestFewerColumnsThanTheFile loads a file that has columns which the schema
// does not name any more.
func TestFewerColumnsThanTheFile(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", growingSchema)
	file := w.define("fewer", "{path: out/f.csv}")
	w.write("form.schema.yaml", "version: 1\nunknown: ignore\ncolumns:\n  - {name: name, from: \"item:1\", type: string}\n  - {name: id, from: result_id, type: int64}\n")
	const query = "SELECT string_agg(id || name, ' ' ORDER BY id) FROM form1"
	name, db := database(t), duck(t)
	psql(t, name, w.formetl("schema", "ddl", file, "--dialect", "postgres"))
	duckRun(t, db, w.formetl("schema", "ddl", file, "--dialect", "duckdb"))
	for engine, got := range map[string]string{"postgres": psql(t, name, query), "duckdb": duckLines(t, db, query)} {
		if strings.TrimSpace(got) != "1Ada 2 3Grace 4x" {
			t.Errorf("%s: got %q", engine, got)
		}
	}
}

// TestNothingToLoad empties the table of a form that has no results any more.
func TestNothingToLoad(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", growingSchema+"  - {name: item_99, from: \"item:99\", type: string}\n")
	file := w.define("full", "{path: full/, format: ndjson, partition: day}")
	for _, dialect := range []string{"duckdb", "postgres"} {
		e := engines(t, dialect)
		if err := e.run(w.formetl("schema", "ddl", file, "--dialect", dialect)); err != nil {
			t.Fatal(err)
		}
		if got := e.count(); !strings.HasPrefix(got, "4 ") {
			t.Errorf("%s: got %q", dialect, got)
		}
		none := w.write("none.yaml", strings.Replace(readFile(t, file), "load: [{path: full/", "extract: {from: 2020-01-01, to: 2020-01-02}\nload: [{path: none/", 1))
		w.formetl("run", none, "--log-level", "error")
		script := w.formetl("schema", "ddl", none, "--dialect", dialect)
		if err := e.run(script + "INSERT INTO form1 (id) VALUES (7);"); err != nil {
			t.Fatalf("%v\n%s", err, script)
		}
		if got := e.count(); got != "1 0 - - -" {
			t.Errorf("%s: the table holds %q", dialect, got)
		}
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestChildOutputs loads a list's elements into a table of their own.
func TestChildOutputs(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", strings.Replace(growingSchema, "list_as: json", "explode: true", 1))
	const query = `SELECT string_agg(id || ':' || "position" || ':' || colours, ' ' ORDER BY id, "position") FROM form1__colours`
	for dialect, output := range map[string]string{"duckdb": "{path: lake/, format: parquet, partition: day}", "postgres": "{path: out/f.csv.gz}"} {
		file := w.define(dialect, output)
		script := w.formetl("schema", "ddl", file, "--dialect", dialect)
		var got string
		if dialect == "postgres" {
			name := database(t)
			psql(t, name, script+script)
			got = psql(t, name, query)
		} else {
			db := duck(t)
			duckRun(t, db, script+script)
			got = duckLines(t, db, query)
		}
		if want := `1:1:red 1:2:a,b|"c" 3:1:blue 4:1:red 4:2:blue`; strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q\n%s", dialect, got, want, numbered(script))
		}
	}
}

// TestLineThatEndsInput holds that a value which psql takes for the end of CSV
// fails and loses nothing, and that NDJSON loads it.
func TestLineThatEndsInput(t *testing.T) {
	const value = "x\n\\.\ny"
	w := newWorld(t, formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}}, []formservice.Result{
		{ID: 1, Items: []formservice.Answer{{ID: "1", Values: []string{value}}}},
		{ID: 2, Items: []formservice.Answer{{ID: "1", Values: []string{"z"}}}},
	}))
	w.write("form.schema.yaml", "version: 1\nunknown: ignore\ncolumns:\n  - {name: id, from: result_id, type: int64}\n  - {name: name, from: \"item:1\", type: string}\n")
	lines, csv := w.define("lines", "{path: out/f.ndjson}"), w.define("csv", "{path: out/f.csv}")
	const query = "SELECT string_agg(id || name, ' ' ORDER BY id) FROM form1"
	name, db := database(t), duck(t)
	psql(t, name, w.formetl("schema", "ddl", lines, "--dialect", "postgres"))
	want := "1" + value + " 2z\n"
	if got := psql(t, name, query); got != want {
		t.Errorf("NDJSON: got %q", got)
	}
	_, err := tryPsql(t, name, w.formetl("schema", "ddl", csv, "--dialect", "postgres"))
	if got := psql(t, name, query); got != want {
		t.Errorf("CSV (%v) left %q", err, got)
	}
	duckRun(t, db, w.formetl("schema", "ddl", csv, "--dialect", "duckdb"))
	if got := duckLines(t, db, query); got != want {
		t.Errorf("DuckDB: got %q", got)
	}
}
