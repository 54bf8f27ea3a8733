package ddl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas"
)

func duckDB() *Dialect {
	return &Dialect{
		Name: "duckdb", quote: doubled(`"`), text: doubled("'"),
		limit: limits{path: 3}, formats: []string{"parquet", "ndjson", "json", "csv"},
		types: types{
			text: "VARCHAR", integer: "BIGINT", float: "DOUBLE", boolean: "BOOLEAN", date: "DATE",
			timestamp: "TIMESTAMP WITH TIME ZONE", decimal: "DECIMAL(%d, %d)", list: "%s[]",
		},
		// There is no primary key. DuckDB checks it before a transaction ends, so one
		// transaction could not delete and load the same ids.
		constraint: notNull,
		load:       loadDuckDB,
	}
}

// loadDuckDB writes statements for a client that continues after an error,
// which does not always end DuckDB's transaction. DELETE counts the loaded
// rows, so it fails if loading failed. If INSERT failed, the counts differ, and
// another statement ends the transaction with an error.
func loadDuckDB(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.scheme() != "" {
		s.note("DuckDB reads %s:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);", w.scheme())
	}
	if w.empty(o) {
		s.line("DELETE FROM %s;", d.path(t.Name))
		return
	}
	s.note("duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.")
	stage := "temp." + t.loading()
	s.line("DROP TABLE IF EXISTS %s;", stage)
	value := d.column
	if w.Format == "csv" {
		value = func(c schemas.Column) string { return d.fromCSV(c, len(t.Columns) == 1) }
	}
	s.items("CREATE TEMPORARY TABLE "+t.loading()+" AS\nSELECT", each(t.Columns, value), "FROM "+d.reader(t, w, o)+";")
	s.line("BEGIN TRANSACTION;")
	s.line("DELETE FROM %s WHERE (SELECT count(*) FROM %s) >= 0;", d.path(t.Name), stage)
	s.line("INSERT INTO %s BY NAME SELECT * FROM %s;", d.path(t.Name), stage)
	s.line("SELECT CASE WHEN loaded = read THEN loaded ELSE error(%s) END AS loaded\nFROM (SELECT (SELECT count(*) FROM %s) AS loaded, (SELECT count(*) FROM %s) AS read);",
		d.text("the rows could not be inserted, and the table stays as it was; see the error before"), d.path(t.Name), stage)
	s.line("COMMIT;")
	s.line("DROP TABLE %s;", stage)
}

// reader returns the call of the table function that reads the output.
func (d *Dialect) reader(t Table, w Written, o Options) string {
	files := each(w.objects(o), func(object string) string {
		if w.named(o) {
			object = literalGlob(object)
		}
		return d.text(literalGlob(w.Path) + object)
	})
	arguments := []string{"[\n    " + strings.Join(files, ",\n    ") + "\n  ]"}
	switch w.Format {
	case "csv":
		// Columns are read as text and by name, because older parts may lack some.
		arguments = append(arguments, "header = true", "delim = ','", `quote = '"'`, `escape = '"'`, "nullstr = ''",
			fmt.Sprintf("allow_quoted_nulls = %t", len(t.Columns) == 1), "auto_detect = false", "strict_mode = true",
			"all_varchar = true", "union_by_name = true", "hive_partitioning = false")
		return "read_csv(" + strings.Join(arguments, ", ") + ")"
	case "ndjson", "json":
		format := "newline_delimited"
		if w.Format == "json" {
			format = "array"
		}
		columns := each(t.Columns, func(c schemas.Column) string { return d.text(c.Name) + ": " + d.text(d.types.of(c.Type)) })
		arguments = append(arguments, "format = '"+format+"'", "hive_partitioning = false",
			"columns = {\n    "+strings.Join(columns, ",\n    ")+"\n  }")
		return "read_json(" + strings.Join(arguments, ", ") + ")"
	}
	// The dt of the folders would hide a column that is itself called dt.
	hive := w.Hive && !slices.ContainsFunc(t.Columns, func(c schemas.Column) bool { return strings.EqualFold(c.Name, "dt") })
	arguments = append(arguments, fmt.Sprintf("hive_partitioning = %t", hive), "union_by_name = true")
	return "read_parquet(" + strings.Join(arguments, ", ") + ")"
}

// fromCSV returns an SQL expression that turns the text of a CSV field into the
// column's type. If the field is alone on its line, "" stands for null.
func (d *Dialect) fromCSV(c schemas.Column, alone bool) string {
	name := d.quote(c.Name)
	if alone && c.Type.Kind != schemas.String {
		name = "nullif(" + name + ", '')"
	}
	switch {
	case c.Type.Kind == schemas.String:
		return name
	case c.ListAs == schemas.ListJSON:
		name = "CAST(" + name + " AS JSON)"
	case c.Type.Kind == schemas.List:
		name = fmt.Sprintf(`CASE WHEN %[1]s = '' THEN [] ELSE list_transform(`+
			`regexp_extract_all(%[1]s || '|', '((?:[^|\\]|\\.)*)\|', 1), `+
			`lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END`, name)
	}
	return fmt.Sprintf("CAST(%s AS %s) AS %s", name, d.types.of(c.Type), d.quote(c.Name))
}

// literalGlob returns the pattern that matches only this path.
func literalGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}
