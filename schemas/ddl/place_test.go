package ddl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas/ddl"
)

// TestColumnsByPosition holds that Redshift, which takes a part's columns by
// position, loads only parts that have the manifest's at the same places.
func TestColumnsByPosition(t *testing.T) {
	part := func(leading int) ddl.Part {
		return ddl.Part{Path: "dt=2026-01-01/part-x.parquet", Bytes: 1, Rows: 1, Leading: leading}
	}
	for _, c := range []struct {
		name    string
		parts   []ddl.Part
		refused bool
	}{
		{"all columns", []ddl.Part{part(3), part(3)}, false},
		{"the first ones", []ddl.Part{part(1), part(3)}, false},
		{"another order", []ddl.Part{part(3), part(0)}, true},
	} {
		w := ddl.Written{Path: "s3://bucket/lake/", Format: "parquet", Hive: true, Known: true, Columns: named("a", "left out", "b").Columns, Parts: c.parts}
		sql, err := ddl.Named("redshift").Load(named("b", "a"), []ddl.Written{w}, ddl.Options{})
		_, listErr := ddl.Named("redshift").Manifest([]ddl.Written{w})
		switch {
		case c.refused:
			var unfit *ddl.UnfitError
			for _, err := range []error{err, listErr} {
				if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "the part dt=2026-01-01/part-x.parquet") || !strings.Contains(err.Error(), "formetl run DEFINITION --full") || strings.Contains(err.Error(), "change the names") {
					t.Errorf("%s: got %v", c.name, err)
				}
			}
		case err != nil || listErr != nil:
			t.Errorf("%s: %v, %v", c.name, err, listErr)
		case !strings.Contains(sql, "(\n  \"a\" VARCHAR(65535),\n  \"left out\" VARCHAR(65535),\n  \"b\" VARCHAR(65535)\n);"):
			t.Errorf("%s: the stage does not have the files' columns:\n%s", c.name, sql)
		}
		for _, dialect := range []string{"duckdb", "snowflake", "bigquery"} { // these take them by name
			if _, err := ddl.Named(dialect).Load(named("b", "a"), []ddl.Written{w}, ddl.Options{}); err != nil {
				t.Errorf("%s, %s: %v", dialect, c.name, err)
			}
		}
	}
	file := ddl.Written{Path: "s3://bucket/f.parquet", Format: "parquet", Known: true, Columns: named("a").Columns, Parts: []ddl.Part{{Bytes: 1, Rows: 1}}}
	if sql, err := ddl.Named("redshift").Load(named("a"), []ddl.Written{file}, ddl.Options{}); err != nil {
		t.Errorf("a single file: %v\n%s", err, sql)
	}
}

// TestNothingIsDeletedFirst holds that no statement takes rows away before the
// files were loaded, and that what does so asks for what was loaded.
func TestNothingIsDeletedFirst(t *testing.T) {
	for _, d := range ddl.Dialects() {
		for name, w := range variants(t) {
			sql, err := d.Load(everyType(t, true), []ddl.Written{w}, ddl.Options{})
			if err != nil || name == "no parts" {
				continue
			}
			loads, deletes := -1, -1
			for _, word := range []string{"FROM read_", `\copy `, "COPY ", "LOAD DATA ", "FROM s3(", "FROM file("} {
				if at := strings.Index(sql, word); at >= 0 && (loads < 0 || at < loads) {
					loads = at
				}
			}
			for _, word := range []string{"DELETE FROM", "INSERT OVERWRITE", "EXCHANGE"} {
				if at := strings.Index(sql, word); at >= 0 && (deletes < 0 || at < deletes) {
					deletes = at
				}
			}
			if loads >= 0 && deletes < loads {
				t.Errorf("%s, %s: rows are taken away before others are loaded:\n%s", d.Name, name, sql)
			}
		}
	}
}
