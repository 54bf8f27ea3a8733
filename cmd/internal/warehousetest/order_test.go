package warehousetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/cli"
	"github.com/formetl/formetl/load"
)

// TestOrderOfColumns runs twice, the second time with the schema's columns in
// another order and one more between them: parts have the older ones at the
// same places, so that all engines can load them. Redshift refuses a dataset
// where they have not.
func TestOrderOfColumns(t *testing.T) {
	w := newWorld(t, growing())
	schema := func(names ...string) {
		from := map[string]string{"id": "result_id", "name": "item:1", "late": "item:99", "quiet": "item:98"}
		text := "version: 1\nunknown: ignore\ncolumns:\n"
		for _, n := range names {
			text += fmt.Sprintf("  - {name: %s, from: %q, type: %s}\n", n, from[n], map[bool]string{true: "int64", false: "string"}[n == "id"])
		}
		w.write("form.schema.yaml", text)
	}
	schema("id", "name")
	file := w.write("order.yaml", fmt.Sprintf("version: 1\nname: order\nsource: {base_url: %q, account: acme, timezone: UTC}\nforms: [form1]\nschema: form.schema.yaml\nextract: {from: 2026-01-01, to: 2026-02-01, window: 1d}\nload: [{path: lake/, format: parquet, partition: day}]\n", w.url))
	w.formetl("run", file, "--log-level", "error")
	schema("name", "late", "id")
	w.formetl("run", file, "--log-level", "error", "--from", "2026-02-01", "--to", "2026-03-01")

	db := duck(t)
	parts, err := filepath.Glob(filepath.Join(w.dir, "lake/dt=*/part-*"))
	if err != nil || len(parts) != 4 {
		t.Fatalf("parts %v (%v)", parts, err)
	}
	for i, want := range []string{"id,name", "id,name", "id,name,late", "id,name,late"} {
		got := duckLines(t, db, "SELECT string_agg(name, ',') FROM parquet_schema('"+parts[i]+"') WHERE num_children IS NULL")
		if strings.TrimSpace(got) != want {
			t.Errorf("%s has %s, want %s", parts[i], got, want)
		}
	}
	duckRun(t, db, w.formetl("schema", "ddl", file, "--dialect", "duckdb"))
	if got := strings.TrimSpace(duckLines(t, db, "SELECT string_agg(id || coalesce(name, '') || coalesce(late, '-'), ' ' ORDER BY id) FROM form1")); got != "1Ada- 2- 3Gracelate 4xlater" {
		t.Errorf("the table holds %q", got)
	}

	// A run without results lists a column that no part has.
	schema("quiet", "name", "late", "id")
	w.formetl("run", file, "--log-level", "error", "--from", "2026-04-01", "--to", "2026-04-02")
	sql := w.formetl("schema", "ddl", file, "--dialect", "duckdb")
	if !strings.Contains(sql, "The column quiet is not in the files yet") {
		t.Errorf("no word of a column that no part has:\n%s", sql)
	}
	duckRun(t, db, "DROP TABLE form1;"+sql)
	if got := strings.TrimSpace(duckLines(t, db, "SELECT count(*) || ' ' || count(quiet) FROM form1")); got != "4 0" {
		t.Errorf("with a column that no part has the table holds %s", got)
	}

	redshiftRefusesMixed(t, w, file)
}

// redshiftRefusesMixed loads the dataset as it is, and not with a part of which
// the manifest says that its columns stand in another order.
func redshiftRefusesMixed(t *testing.T, w *world, file string) {
	t.Helper()
	redshift := func(only string) (code int, text string) {
		var out, failure bytes.Buffer
		lookup := func(string) (string, bool) { return "", false }
		code = cli.Main([]string{"schema", "ddl", file, "--dialect", "redshift", "--location", "s3://bucket/lake/", "--only", only}, strings.NewReader(""), &out, &failure, lookup)
		return code, out.String() + failure.String()
	}
	code, sql := redshift("load")
	if code != 0 || !strings.Contains(sql, "(\n  \"id\" BIGINT,\n  \"name\" VARCHAR(65535),\n  \"late\" VARCHAR(65535)\n);") {
		t.Errorf("%d\n%s", code, sql)
	}
	manifest := filepath.Join(w.dir, "lake", load.ManifestName)
	m, err := load.DecodeManifest([]byte(readFile(t, manifest)))
	if err != nil {
		t.Fatal(err)
	}
	s := m.Schema
	mixed := m.Parts[1].Path
	m.Parts[1].Columns = load.ColumnsDigest([]load.Column{s[1], s[0]})
	data, err := m.Encode()
	if err == nil {
		err = os.WriteFile(manifest, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, only := range []string{"load", "manifest"} {
		if code, text := redshift(only); code != 65 || !strings.Contains(text, mixed) || !strings.Contains(text, "formetl run DEFINITION --full") {
			t.Errorf("--only %s: %d\n%s", only, code, text)
		}
	}
}
