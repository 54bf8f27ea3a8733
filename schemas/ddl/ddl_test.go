package ddl_test

import (
	"encoding/json"
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

// TestLimits tells what an engine cannot hold, by name and with what to do.
// exactly is a table of one decimal.
func exactly(scale int32) ddl.Table {
	t := named("d")
	t.Columns[0].Type = schemas.Type{Kind: schemas.Decimal, Precision: 38, Scale: scale}
	return t
}

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
		{"postgres", named("ctid", "b"), `column "ctid" has the name of a system column`},
		{"postgres", named("CTID"), ""},
		{"postgres", named(many(1600)...), ""},
		{"postgres", named(many(1601)...), "1601 columns and a table takes at most 1600"},
		{"postgres", named(), "no columns"},
		{"redshift", named(a(127)), ""},
		{"redshift", named(a(128)), "longer than 127 bytes"},
		{"redshift", named(many(1601)...), "at most 1600"},
		{"snowflake", named(strings.Repeat("é", 255)), ""},
		{"snowflake", named(a(256)), "longer than 255 characters"},
		{"bigquery", named(strings.Repeat("é", 300)), ""},
		{"bigquery", named(a(301)), "longer than 300 characters"},
		{"bigquery", named("Größe in cm", "日本", "a&b%=+:'<>#|"), ""},
		{"bigquery", named("price (€)"), `column "price (€)" holds '('`},
		{"bigquery", named("a.b"), "holds '.'"},
		{"bigquery", named("_partitionDate"), "begins with _PARTITION"},
		{"bigquery", named(many(10_001)...), "at most 10000"},
		{"duckdb", named(a(5000)), ""},
		{"snowflake", exactly(37), ""},
		{"snowflake", exactly(38), `column "d" is decimal(38,38), and a decimal has at most 37 digits`},
		{"redshift", exactly(38), "at most 37 digits"},
		{"postgres", exactly(38), ""},
		{"duckdb", ddl.Table{Name: []string{"a", "b", "c", "d"}, Columns: named("x").Columns}, "at most 3 parts"},
	} {
		_, err := ddl.Named(c.dialect).Create(c.table)
		var unfit *ddl.UnfitError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.dialect, err)
		case c.want != "" && (!errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "change the names or types in the schema file")):
			t.Errorf("%s: got %v, want %s", c.dialect, err, c.want)
		}
		if _, loadErr := ddl.Named(c.dialect).Load(c.table, nil, ddl.Options{}); (err == nil) != (loadErr == nil) {
			t.Errorf("%s: Create says %v, Load %v", c.dialect, err, loadErr)
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

// TestWhichOutputIsLoaded chooses the output that suits the engine best and
// says why others are left out.
func TestWhichOutputIsLoaded(t *testing.T) {
	csv, excel := ddl.Written{Path: "/o/f.csv", Format: "csv"}, ddl.Written{Path: "/o/e.csv", Format: "csv", Profile: "excel"}
	lines, parquet := ddl.Written{Path: "/o/f.ndjson", Format: "ndjson"}, ddl.Written{Path: "/o/f.parquet", Format: "parquet"}
	arrow, remote := ddl.Written{Path: "/o/f.arrow", Format: "arrow"}, ddl.Written{Path: "s3://b/f.parquet", Format: "parquet"}
	runs := ddl.Written{Path: "/o/{run_id}.csv", Format: "csv", Refuse: "each run has its own"}
	set := ddl.Written{Path: "/o/", Format: "ndjson"}
	holding := func(w ddl.Written, rows int64) ddl.Written {
		w.Known, w.Columns, w.Parts = true, named("a").Columns, []ddl.Part{{Rows: rows, Leading: 1}}
		return w
	}
	quiet := func(leading ...int) ddl.Written { // a manifest that lists a column which parts may lack
		w := ddl.Written{Path: "/o/", Format: "parquet", Known: true, Columns: named("a", "b").Columns}
		for _, n := range leading {
			w.Parts = append(w.Parts, ddl.Part{Path: fmt.Sprint("part-", n), Rows: 1, Leading: n})
		}
		return w
	}
	choices := named("a", "b")
	choices.Columns[1].Type, choices.Columns[1].ListAs = schemas.ListOf(choices.Columns[1].Type), schemas.ListColumns
	for _, c := range []struct {
		dialect string
		table   ddl.Table
		outputs []ddl.Written
		want    []string
	}{
		{"duckdb", named("a"), []ddl.Written{csv, lines, parquet, arrow}, []string{"read_parquet", "f.csv (csv) holds the same results", "f.arrow (arrow) is not loaded: duckdb statements here read"}},
		{"duckdb", named("a"), []ddl.Written{excel}, []string{"the profile excel changes values", "nothing to load the table t from"}},
		{"duckdb", choices, []ddl.Written{csv}, []string{"list_as: columns", "nothing to load"}},
		{"duckdb", choices, []ddl.Written{csv, lines}, []string{"read_json"}},
		{"duckdb", named("a"), []ddl.Written{runs}, []string{"each run has its own"}},
		{"duckdb", named("a"), nil, []string{"nothing to load"}},
		{"duckdb", named("a"), []ddl.Written{remote}, []string{"extension httpfs", "'s3://b/f.parquet'", "No run has written s3://b/f.parquet yet"}},
		{"postgres", named("a"), []ddl.Written{parquet}, []string{"postgres statements here read ndjson or csv; add such an output"}},
		{"postgres", named("a"), []ddl.Written{parquet, csv}, []string{`\copy formetl_load FROM '/o/f.csv'`}},
		{"duckdb", named("a"), []ddl.Written{{Path: "/o/f.csv", Format: "csv", Known: true, Columns: named("b").Columns}}, []string{"none of the table's columns"}},
		{"duckdb", named("a", "b"), []ddl.Written{{Path: "/o/f.csv", Format: "csv", Known: true, Columns: named("c", "b").Columns}}, []string{"The column a is not in the files yet"}},
		{"postgres", named("a"), []ddl.Written{{Path: "/o/", Format: "csv"}}, []string{"psql reads no pattern"}},
		{"postgres", named("a"), []ddl.Written{{Path: "s3://b/it's.csv.zst", Format: "csv", Compression: "zstd", Endpoint: "https://e", Region: "r"}}, []string{`FROM PROGRAM 'aws s3 cp --endpoint-url ''https://e'' --region ''r'' ''s3://b/it''\''''s.csv.zst'' - | zstd -dcq'`}},
		{"redshift", named("a"), []ddl.Written{parquet}, []string{"reads s3:// only; copy it there and give --location"}},
		{"redshift", named("a"), []ddl.Written{remote}, []string{"no run has written any yet"}},
		{"bigquery", named("a"), []ddl.Written{parquet}, []string{"give --location gs://"}},
		{"bigquery", named("a"), []ddl.Written{{Path: "gs://b/x.ndjson.zst", Format: "ndjson", Compression: "zstd"}}, []string{"no zstd around text"}},
		{"snowflake", named("a"), []ddl.Written{{Path: "az://b/x", Format: "parquet"}}, []string{"s3://, gs://"}},
		{"duckdb", named("a"), []ddl.Written{holding(set, 400), holding(parquet, 6)}, []string{"read_json", "f.parquet (parquet) holds 6 rows, not the 400 of /o/"}},
		{"duckdb", named("a"), []ddl.Written{holding(set, 400), holding(parquet, 400)}, []string{"read_parquet", "/o/ (ndjson) holds the same results"}},
		{"duckdb", named("a"), []ddl.Written{holding(csv, 7), holding(parquet, 6)}, []string{"read_parquet", "f.csv (csv) holds 7 rows, not the 6 of /o/f.parquet"}},
		{"duckdb", named("a", "b"), []ddl.Written{quiet(1, 1)}, []string{"The column b is not in the files yet"}},
		{"duckdb", named("a", "b"), []ddl.Written{quiet(1, 2)}, []string{"  \"b\"\nFROM read_parquet"}},
		{"duckdb", named("a", "b"), []ddl.Written{quiet(1, 0)}, []string{"  \"b\"\nFROM read_parquet"}},
		{"duckdb", ddl.Table{Name: []string{"Formetl_load"}, Columns: named("a").Columns}, []ddl.Written{lines}, []string{`INSERT INTO "Formetl_load" BY NAME SELECT * FROM temp.formetl_load_2;`}},
		{"postgres", ddl.Table{Name: []string{"formetl_load"}, Columns: named("a").Columns}, []ddl.Written{lines}, []string{`DELETE FROM "formetl_load";`, "\\copy formetl_load_2 "}},
		{"redshift", ddl.Table{Name: []string{"formetl_load"}, Columns: named("a").Columns}, []ddl.Written{holding(remote, 1)}, []string{`DELETE FROM "formetl_load";`, "COPY formetl_load_2\n"}},
	} {
		sql, err := ddl.Named(c.dialect).Load(c.table, c.outputs, ddl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(sql, want) {
				t.Errorf("%s lacks %q:\n%s", c.dialect, want, sql)
			}
		}
	}
}

// TestManyParts keeps statements within what an engine takes.
func TestManyParts(t *testing.T) {
	w := ddl.Written{Path: "s3://b/lake/", Format: "parquet", Hive: true, Known: true, Columns: named("a").Columns}
	for i := range 2500 {
		w.Parts = append(w.Parts, ddl.Part{Path: fmt.Sprintf("dt=2026-01-01/part-%d.parquet", i), Bytes: int64(i), Leading: 1})
	}
	for dialect, want := range map[string]struct {
		text  string
		times int
	}{"snowflake": {"COPY INTO", 3}, "bigquery": {"LOAD DATA", 3}, "duckdb": {"INSERT INTO", 1}, "redshift": {"COPY formetl_load", 1}} {
		sql, err := ddl.Named(dialect).Load(named("a"), []ddl.Written{w}, ddl.Options{})
		if err != nil || strings.Count(sql, want.text) != want.times {
			t.Errorf("%s has %q %d times, want %d (%v)", dialect, want.text, strings.Count(sql, want.text), want.times, err)
		}
		checkGrammar(t, dialect, sql)
	}
	if sql, _ := ddl.Named("bigquery").Load(named("a"), []ddl.Written{w}, ddl.Options{}); strings.Count(sql, "LOAD DATA OVERWRITE") != 1 {
		t.Error("a second statement of BigQuery's overwrites what the first loaded")
	}
}

// TestSingleFileThatNobodyWrote is loaded by its own path, and not as a folder.
func TestSingleFileThatNobodyWrote(t *testing.T) {
	sql, err := ddl.Named("bigquery").Load(named("a"), []ddl.Written{{Path: "gs://b/f.parquet", Format: "parquet"}}, ddl.Options{})
	if err != nil || !strings.Contains(sql, "'gs://b/f.parquet'") {
		t.Errorf("%v in\n%s", err, sql)
	}
}

// TestRedshiftManifest lists parts with their sizes, as COPY of Parquet needs.
func TestRedshiftManifest(t *testing.T) {
	w := lake(t, "s3://bucket/lake/form1/", "parquet")
	data, err := ddl.Named("redshift").Manifest([]ddl.Written{{Path: "/f.csv", Format: "csv"}, w})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Entries []struct {
			URL       string `json:"url"`
			Mandatory bool   `json:"mandatory"`
			Meta      struct {
				ContentLength int64 `json:"content_length"`
			} `json:"meta"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Entries) != 2 || m.Entries[0].URL != w.Path+w.Parts[0].Path || !m.Entries[0].Mandatory || m.Entries[0].Meta.ContentLength != 1234 {
		t.Errorf("got %s", data)
	}
	for _, outputs := range [][]ddl.Written{nil, {{Path: "/f.parquet", Format: "parquet", Known: true}}} {
		if _, err := ddl.Named("redshift").Manifest(outputs); !errors.Is(err, ddl.ErrNoManifest) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := ddl.Named("duckdb").Manifest([]ddl.Written{w}); !errors.Is(err, ddl.ErrNoManifest) {
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
