package warehousetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goOn runs a script as clients do that go on after an error: DuckDB's without
// -bail, psql without ON_ERROR_STOP. It gives what failed.
func goOn(t *testing.T, dialect string) (run func(script string) []string, rows func(query string) string) {
	t.Helper()
	if dialect == "postgres" {
		name := database(t)
		run = func(script string) []string {
			script = strings.ReplaceAll(script, `\set ON_ERROR_STOP on`, `\set ON_ERROR_STOP off`)
			out, err := tryPsql(t, name, "\\set ON_ERROR_STOP off\n\\o /dev/null\n"+script+"\n\\o\n\\echo :ERROR\n")
			if err != nil || strings.TrimSpace(out) == "true" {
				return []string{fmt.Sprint(err, out)}
			}
			return nil
		}
		return run, func(query string) string { return strings.TrimSpace(psql(t, name, query)) }
	}
	db := duck(t)
	run = func(script string) (failed []string) {
		for statement := range strings.SplitSeq(script, ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				failed = append(failed, err.Error())
			}
		}
		return failed
	}
	return run, func(query string) string { return strings.TrimSpace(duckLines(t, db, query)) }
}

// TestClientsThatGoOn holds that a script which fails anywhere leaves the
// table's rows, also where the client runs its other statements.
func TestClientsThatGoOn(t *testing.T) {
	w := newWorld(t, growing())
	w.write("form.schema.yaml", growingSchema)
	const ids = "SELECT coalesce(string_agg(id::varchar, ' ' ORDER BY id), 'none') FROM form1"
	for _, c := range []struct{ dialect, output, flag string }{
		{"duckdb", "{path: %s/, format: parquet, partition: day}", ""},
		{"duckdb", "{path: %s/, format: parquet, partition: day}", "--glob"},
		{"duckdb", "{path: %s/, format: csv, partition: day}", ""},
		{"duckdb", "{path: %s/, format: ndjson, partition: day}", ""},
		{"duckdb", "{path: %s/f.parquet}", ""},
		{"postgres", "{path: %s/, format: ndjson, partition: day}", ""},
		{"postgres", "{path: %s/f.ndjson}", ""},
		{"postgres", "{path: %s/f.csv.gz}", ""},
	} {
		name := strings.NewReplacer("{path: %s/", "", "}", "", ", partition: day", "", "format: ", "", ", ", "", " ", "").Replace(c.dialect + c.output + c.flag)
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, url: w.url, dir: w.dir, form: w.form}
			file := w.write(name+".yaml", fmt.Sprintf("version: 1\nname: x\nsource: {base_url: %q, account: acme, timezone: UTC}\nforms: [form1]\nschema: form.schema.yaml\nextract: {from: 2026-01-01, to: 2026-02-01, window: 1d}\nload: [%s]\n", w.url, fmt.Sprintf(c.output, name)))
			args := []string{"schema", "ddl", file, "--dialect", c.dialect}
			if c.flag != "" {
				args = append(args, c.flag)
			}
			run, rows := goOn(t, c.dialect)
			fails := func(what, script string) {
				t.Helper()
				if failed := run(script); len(failed) == 0 && c.dialect == "duckdb" {
					t.Errorf("%s: nothing failed\n%s", what, numbered(script))
				}
			}
			w.formetl("run", file, "--log-level", "error")
			if failed := run(w.formetl(args...)); len(failed) > 0 {
				t.Fatal(failed)
			}
			w.formetl("run", file, "--log-level", "error", "--from", "2026-01-01", "--to", "2026-03-01")
			load := w.formetl(append(args, "--only", "load")...)
			fails("the table lacks a column", load)
			if got := rows(ids); got != "1 2" {
				t.Errorf("a table without a later column holds %s", got)
			}
			run("ALTER TABLE form1 ADD COLUMN item_99 varchar;\n")
			if failed := run(load); len(failed) > 0 {
				t.Fatal(failed)
			}
			run("DELETE FROM form1 WHERE id > 2;\n")
			partOf(t, filepath.Join(w.dir, name), func() {
				if c.flag == "" { // a pattern does not miss it
					fails("a part is missing", load)
				}
			})
			if got := rows(ids); got != "1 2" {
				t.Errorf("a load without one of its parts left %s", got)
			}
			run("ALTER TABLE form1 RENAME TO aside;\n")
			fails("the table is missing", load)
			run("ALTER TABLE aside RENAME TO form1;\n")
			if got := rows(ids); got != "1 2" {
				t.Errorf("a load into no table left %s", got)
			}
			if failed := run(load); len(failed) > 0 {
				t.Error("what failed before is in the way:", failed)
			}
			if got := rows(ids); got != "1 2 3 4" {
				t.Errorf("the table holds %s in the end", got)
			}
		})
	}
}

// partOf takes the last data object of an output away while do runs.
func partOf(t *testing.T, folder string, do func()) {
	t.Helper()
	var last string
	for _, pattern := range []string{"f.*", "dt=*/part-*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			if !strings.Contains(file, ".json") || strings.HasSuffix(file, ".ndjson") {
				last = file
			}
		}
	}
	if last == "" {
		t.Fatalf("%s holds no data", folder)
	}
	if err := os.Rename(last, last+".away"); err != nil {
		t.Fatal(err)
	}
	do()
	if err := os.Rename(last+".away", last); err != nil {
		t.Fatal(err)
	}
}
