package main

import (
	"fmt"
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

// TestLaterRuns shows a dataset whose older parts lack a column by a view, and what a view
// that was made before a later run shows then.
func TestLaterRuns(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", growingSchema)
	for _, format := range []string{"parquet", "csv", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			w := &world{t: t, url: w.url, dir: w.dir, form: w.form}
			file := w.write(format+".yaml", fmt.Sprintf("version: 1\nname: %s\nsource: {base_url: %q, account: acme, timezone: UTC}\nforms: [form1]\nschema: form.schema.yaml\nextract: {from: 2026-01-01, to: 2026-02-01, window: 1d}\nload: [{path: %[1]s/, format: %[1]s, partition: day}]\n", format, w.url))
			db := duck(t)
			const seen = "SELECT count(*) || ' ' || sum(coalesce(array_length(colours, 1), 0)) || ' ' || max(colours[2]) FROM form1"
			w.formetl("run", file, "--log-level", "error")
			duckRun(t, db, w.formetl("schema", "ddl", file, "--dialect", "duckdb"))
			if got := strings.TrimSpace(duckLines(t, db, seen)); got != `2 2 a,b|"c"` {
				t.Errorf("January: got %q", got)
			}
			w.formetl("run", file, "--log-level", "error", "--from", "2026-02-01", "--to", "2026-03-01")
			if got := strings.TrimSpace(duckLines(t, db, seen)); got != "4 5 blue" {
				t.Errorf("the view that was there: got %q", got)
			}
			duckRun(t, db, w.formetl("schema", "ddl", file, "--dialect", "duckdb"))
			if got := strings.TrimSpace(duckLines(t, db, strings.Replace(seen, "FROM", "|| ' ' || min(item_99) || ' ' || max(item_99) FROM", 1))); got != "4 5 blue late later" {
				t.Errorf("February: got %q", got)
			}
		})
	}
}

// TestFewerColumnsThanTheFile reads a file that has columns which the schema does not name
// any more.
func TestFewerColumnsThanTheFile(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", growingSchema)
	file := w.define("fewer", "{path: out/f.csv}")
	w.write("form.schema.yaml", "version: 1\nunknown: ignore\ncolumns:\n  - {name: name, from: \"item:1\", type: string}\n  - {name: id, from: result_id, type: int64}\n")
	db := duck(t)
	duckRun(t, db, w.formetl("schema", "ddl", file, "--dialect", "duckdb"))
	if got := strings.TrimSpace(duckLines(t, db, "SELECT string_agg(id || name, ' ' ORDER BY id) FROM form1")); got != "1Ada 2 3Grace 4x" {
		t.Errorf("got %q", got)
	}
}

// TestChildOutputs shows a list's elements in a view of their own.
func TestChildOutputs(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", strings.Replace(growingSchema, "list_as: json", "explode: true", 1))
	for name, output := range map[string]string{"parquet": "{path: lake/, format: parquet, partition: day}", "csv": "{path: out/f.csv.gz}"} {
		file := w.define(name, output)
		db := duck(t)
		duckRun(t, db, w.formetl("schema", "ddl", file, "--dialect", "duckdb"))
		got := duckLines(t, db, `SELECT string_agg(id || ':' || "position" || ':' || colours, ' ' ORDER BY id, "position") FROM form1__colours`)
		if want := `1:1:red 1:2:a,b|"c" 3:1:blue 4:1:red 4:2:blue`; strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		psql(t, database(t), w.formetl("schema", "ddl", file, "--dialect", "postgres"))
	}
}
