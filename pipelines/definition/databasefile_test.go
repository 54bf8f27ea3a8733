package definition

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withDuckDB are the options of a program that is built with a database in files.
func withDuckDB() LoadOptions {
	o := testOptions()
	o.Databases = append(o.Databases, DatabaseKind{Name: "duckdb", Schema: "main", InFile: true, Address: func(file string) (string, error) {
		if strings.HasSuffix(file, "/") {
			return "", errors.New("the path is not that of a file")
		}
		return "duckdb://" + file, nil
	}})
	return o
}

// A table of a database in a file is named by the file's path, relative to the definition.
func TestDatabaseInFile(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ output, want string }{
		{"{database: duckdb, path: warehouse.duckdb, table: feedback}", "duckdb://" + filepath.ToSlash(dir) + "/warehouse.duckdb/main.feedback/"},
		{`{database: duckdb, path: data/w.db, table: "forms.{form}", partition: month}`, "duckdb://" + filepath.ToSlash(dir) + "/data/w.db/forms.{form}/"},
		{"{database: duckdb, path: /data/w.db, table: t}", "duckdb:///data/w.db/main.t/"},
		{"{database: duckdb, table: t}", "needs path"},
		{"{database: duckdb, path: w.db}", "needs table"},
		{"{database: duckdb, path: w.db, dsn: host=h, table: t}", "has no dsn"},
		{"{database: duckdb, path: w.db, format: csv, table: t}", "has no format"},
		{`{database: duckdb, path: "{form}.db", table: t}`, "placeholder stands in the path"},
		{"{database: duckdb, path: s3://bucket/w.db, table: t}", "local file"},
		{"{database: duckdb, path: lake/, table: t}", "not that of a file"},
		{"{database: duckdb, path: ~/w.db, table: t}", "home folder"},
		{"{database: postgres, path: w.db, table: t}", "has no path"},
	} {
		file := filepath.Join(dir, "feedback.yaml")
		text := "version: 1\nname: feedback\nsource: {base_url: https://example.com, account: acme, timezone: UTC}\nforms: [form1]\nload:\n  - " + c.output + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		def, err := Load(file, withDuckDB())
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s gives %v", c.output, err)
		case err == nil && def.Outputs[0].Path != c.want:
			t.Errorf("%s leads to %s", c.output, def.Outputs[0].Path)
		case err == nil && (def.Outputs[0].Format != "duckdb" || def.Outputs[0].Database == nil):
			t.Errorf("%s is no table", c.output)
		}
	}
}
