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
		create: createDuckDB, load: loadDuckDB,
	}
}

func duckType(t schemas.Type) string {
	of, list := elem(t)
	name := scalars{"VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP WITH TIME ZONE", "DECIMAL(%d, %d)"}.of(of)
	if list {
		return name + "[]"
	}
	return name
}

// createDuckDB makes no primary key: DuckDB checks it before a transaction
// ends, and the same ids could not be deleted and loaded in one.
func createDuckDB(d *Dialect, s *script, t Table) {
	s.items("CREATE TABLE IF NOT EXISTS "+d.table(t)+" (", each(t, func(c schemas.Column) string {
		return d.quote(c.Name) + " " + duckType(c.Type) + notNull(c)
	}), ");")
	d.commentOn(s, t)
}

// loadDuckDB writes statements that DuckDB's client, which goes on after an
// error, can run: one that names what is not there does not end DuckDB's
// transaction. Where the files cannot be loaded DELETE fails, as it asks for what
// was loaded; where INSERT fails the count does not agree, which ends the
// transaction.
func loadDuckDB(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.scheme() != "" {
		s.note("DuckDB reads %s:// by its extension httpfs; its credentials: CREATE SECRET (TYPE s3, PROVIDER credential_chain);", w.scheme())
	}
	if w.empty(o) {
		s.line("DELETE FROM %s;", d.table(t))
		return
	}
	s.note("duckdb -bail stops at an error; without it the script goes on, and the table stays as it was.")
	stage := "temp." + t.loading()
	s.line("DROP TABLE IF EXISTS %s;", stage)
	s.items("CREATE TEMPORARY TABLE "+t.loading()+" AS\nSELECT", each(t, func(c schemas.Column) string {
		if w.Format == "csv" {
			return d.fromCSV(c, len(t.Columns) == 1)
		}
		return d.quote(c.Name)
	}), "FROM "+d.reader(t, w, o)+";")
	s.line("BEGIN TRANSACTION;")
	s.line("DELETE FROM %s WHERE (SELECT count(*) FROM %s) >= 0;", d.table(t), stage)
	s.line("INSERT INTO %s BY NAME SELECT * FROM %s;", d.table(t), stage)
	s.line("SELECT CASE WHEN loaded = read THEN loaded ELSE error(%s) END AS loaded\nFROM (SELECT (SELECT count(*) FROM %s) AS loaded, (SELECT count(*) FROM %s) AS read);",
		d.text("the rows could not be inserted, and the table stays as it was; see the error before"), d.table(t), stage)
	s.line("COMMIT;")
	s.line("DROP TABLE %s;", stage)
}

// reader is the table function that reads the output.
func (d *Dialect) reader(t Table, w Written, o Options) string {
	var files []string
	for _, object := range w.objects(o) {
		if w.named(o) {
			files = append(files, d.text(literalGlob(w.Path+object)))
		} else {
			files = append(files, d.text(literalGlob(w.Path)+object))
		}
	}
	arguments := []string{"[\n    " + strings.Join(files, ",\n    ") + "\n  ]"}
	switch w.Format {
	case "csv":
		// All as text and by name: a part may lack columns that came later.
		arguments = append(arguments, "header = true", "delim = ','", `quote = '"'`, `escape = '"'`, "nullstr = ''",
			fmt.Sprintf("allow_quoted_nulls = %t", len(t.Columns) == 1), "auto_detect = false", "strict_mode = true",
			"all_varchar = true", "union_by_name = true", "hive_partitioning = false")
		return "read_csv(" + strings.Join(arguments, ", ") + ")"
	case "ndjson", "json":
		format := "newline_delimited"
		if w.Format == "json" {
			format = "array"
		}
		arguments = append(arguments, "format = '"+format+"'", "hive_partitioning = false", d.shape(t))
		return "read_json(" + strings.Join(arguments, ", ") + ")"
	}
	// A column that is called dt itself would be hidden by the folders' dt.
	hive := w.Hive && !slices.ContainsFunc(t.Columns, func(c schemas.Column) bool { return strings.EqualFold(c.Name, "dt") })
	arguments = append(arguments, fmt.Sprintf("hive_partitioning = %t", hive), "union_by_name = true")
	return "read_parquet(" + strings.Join(arguments, ", ") + ")"
}

// shape tells the JSON reader the columns and their types.
func (d *Dialect) shape(t Table) string {
	return "columns = {\n    " + strings.Join(each(t, func(c schemas.Column) string {
		return d.text(c.Name) + ": " + d.text(duckType(c.Type))
	}), ",\n    ") + "\n  }"
}

// fromCSV turns the text of a CSV field into the column's type. The only field
// of a line is "" for null.
func (d *Dialect) fromCSV(c schemas.Column, alone bool) string {
	name := d.quote(c.Name)
	if alone && c.Type.Kind != schemas.String {
		name = "nullif(" + name + ", '')"
	}
	_, list := elem(c.Type)
	switch {
	case list && c.ListAs == schemas.ListJSON:
		return fmt.Sprintf("CAST(CAST(%s AS JSON) AS %s) AS %s", name, duckType(c.Type), d.quote(c.Name))
	case list:
		return fmt.Sprintf(`CAST(CASE WHEN %[1]s = '' THEN [] ELSE list_transform(`+
			`regexp_extract_all(%[1]s || '|', '((?:[^|\\]|\\.)*)\|', 1), `+
			`lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END AS %[2]s) AS %[3]s`,
			name, duckType(c.Type), d.quote(c.Name))
	case c.Type.Kind == schemas.String:
		return name
	}
	return fmt.Sprintf("CAST(%s AS %s) AS %s", name, duckType(c.Type), d.quote(c.Name))
}

// literalGlob makes a path that stands for itself where patterns are read.
func literalGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}
