package ddl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

func named(names ...string) ddl.Table {
	table := ddl.Table{Name: []string{"t"}}
	for _, name := range names {
		table.Columns = append(table.Columns, schemas.Column{Name: name, Type: schemas.Type{Kind: schemas.String}})
	}
	return table
}

// exactly is a table of one decimal.
func exactly(scale int32) ddl.Table {
	t := named("d")
	t.Columns[0].Type = schemas.Type{Kind: schemas.Decimal, Precision: 38, Scale: scale}
	return t
}

// TestLimits tells what an engine cannot hold, by name and with what to do.
func TestLimits(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	many := func(n int) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint("c", i)
		}
		return names
	}
	for _, c := range []struct {
		dialect string
		table   ddl.Table
		want    string // "" where it fits
	}{
		{"postgres", named(a(63)), ""},
		{"postgres", named(a(64)), "longer than 63 bytes"},
		{"postgres", named(strings.Repeat("é", 32)), "longer than 63 bytes"},
		{"postgres", named("ctid", "b"), `column "ctid" has a name that the database keeps for its own columns`},
		{"postgres", named("CTID"), ""},
		{"postgres", named(many(1600)...), ""},
		{"postgres", named(many(1601)...), "1601 columns, but a table can have at most 1600"},
		{"postgres", named(), "no columns"},
		{"redshift", named(a(127)), ""},
		{"redshift", named(a(128)), "longer than 127 bytes"},
		{"redshift", named(many(1601)...), "at most 1600"},
		{"snowflake", named(strings.Repeat("é", 255)), ""},
		{"snowflake", named(a(256)), "longer than 255 characters"},
		{"bigquery", named(strings.Repeat("é", 300)), ""},
		{"bigquery", named(a(301)), "longer than 300 characters"},
		{"bigquery", named("Größe in cm", "日本", "a&b%=+:'<>#|"), ""},
		{"bigquery", named("price (€)"), `column "price (€)" contains '('`},
		{"bigquery", named("a.b"), "contains '.'"},
		{"bigquery", named("_partitionDate"), "begins with _PARTITION"},
		{"bigquery", named(many(10_001)...), "at most 10000"},
		{"duckdb", named(a(5000)), ""},
		{"snowflake", exactly(37), ""},
		{"snowflake", exactly(38), `column "d" is decimal(38,38), but a decimal can have at most 37 digits`},
		{"redshift", exactly(38), "at most 37 digits"},
		{"postgres", exactly(38), ""},
		{"duckdb", ddl.Table{Name: []string{"a", "b", "c", "d"}, Columns: named("x").Columns}, "more than 3 parts"},
	} {
		_, err := ddl.Named(c.dialect).Create(c.table)
		var unfit *ddl.UnfitError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.dialect, err)
		case c.want != "" && (!errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.dialect, err, c.want)
		}
		if c.dialect == "duckdb" {
			if _, viewErr := ddl.View(c.table, ddl.Files{Path: "/f.parquet", Format: "parquet"}); (err == nil) != (viewErr == nil) {
				t.Errorf("Create says %v, View %v", err, viewErr)
			}
		}
	}
}

// TestManyProblemsAreCut keeps an error readable.
func TestManyProblemsAreCut(t *testing.T) {
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("a.%d", i)
	}
	_, err := ddl.Named("bigquery").Create(named(names...))
	if err == nil || !strings.Contains(err.Error(), "and 20 more") || strings.Count(err.Error(), "\n") > 13 {
		t.Errorf("got %v", err)
	}
}

// TestDialectNames are those of the flag.
func TestDialectNames(t *testing.T) {
	for _, name := range ddl.Names() {
		if d := ddl.Named(name); d == nil || d.Name != name {
			t.Errorf("no dialect %s", name)
		}
	}
	if ddl.Named("mysql") != nil {
		t.Error("a dialect that is none")
	}
}
