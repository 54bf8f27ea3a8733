package ddl

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
)

// Files are the data files of one output.
type Files struct {
	Path      string // path of the file, or of a dataset's folder with a slash at its end
	Format    string // format of the files, one of ViewFormats
	Extension string // extension of a dataset's parts, such as .csv.gz
	Folders   bool   // the parts lie in folders dt=…

	Endpoint, Region string // of the bucket's server; "" for AWS
	PathStyle        bool   // the bucket stands in the path of URLs
}

// ViewFormats returns the formats that a view can read, the best first.
func ViewFormats() []string { return []string{"parquet", "ndjson", "json", "csv"} }

// View returns the statement that creates a view of DuckDB over the files of an
// output. It finds the parts of a dataset by a pattern, so it stays right after later
// runs. The error is an *UnfitError if DuckDB cannot hold the table.
func View(t Table, f Files) (string, error) {
	t, d := t.written(), duckDB()
	if err := d.check(t); err != nil {
		return "", err
	}
	var s script
	server := ""
	if scheme, host, other := strings.Cut(f.Endpoint, "://"); other {
		style := map[bool]string{true: "path", false: "vhost"}[f.PathStyle]
		server = fmt.Sprintf(", ENDPOINT %s, USE_SSL %t, URL_STYLE '%s', REGION %s", d.text(host), scheme != "http", style, d.text(cmp.Or(f.Region, "us-east-1")))
	}
	if scheme, _, remote := strings.Cut(f.Path, "://"); remote {
		s.note("DuckDB reads %s:// with its extension httpfs. To give it credentials, run CREATE SECRET (TYPE s3, PROVIDER credential_chain%s);", scheme, server)
	}
	if strings.HasSuffix(f.Path, "/") {
		s.note("A query is right if no run wrote meanwhile: then the file %s_SUCCESS is the same before and after it. Otherwise query again.", f.Path)
	}
	selected := []string{"*"}
	if f.Format == "csv" {
		selected = each(t.Columns, func(c schemas.Column) string { return d.fromCSV(c, len(t.Columns) == 1) })
	}
	s.items("CREATE OR REPLACE VIEW "+d.path(t.Name)+" AS\nSELECT", selected, "FROM "+d.reader(t, f)+";")
	return s.String(), nil
}

// reader returns the call of the table function that reads the files.
func (d *Dialect) reader(t Table, f Files) string {
	pattern := literalGlob(f.Path)
	if strings.HasSuffix(f.Path, "/") {
		if f.Folders {
			pattern += "dt=*/"
		}
		pattern += "part-*[0-9]" + f.Extension // a copy's name mostly has no digit there
	}
	call := func(function string, arguments ...string) string {
		return function + "(" + d.text(pattern) + ", hive_partitioning = false, " + strings.Join(arguments, ", ") + ")"
	}
	switch f.Format {
	case "csv":
		// Columns are read as text and by name, because older parts may lack some.
		return call("read_csv", "header = true", "delim = ','", `quote = '"'`, `escape = '"'`, "nullstr = ''",
			fmt.Sprintf("allow_quoted_nulls = %t", len(t.Columns) == 1), "auto_detect = false", "strict_mode = true",
			"all_varchar = true", "union_by_name = true")
	case "ndjson", "json":
		format := "newline_delimited"
		if f.Format == "json" {
			format = "array"
		}
		columns := each(t.Columns, func(c schemas.Column) string { return d.text(c.Name) + ": " + d.text(d.types.of(c.Type)) })
		return call("read_json", "format = '"+format+"'", "columns = {\n    "+strings.Join(columns, ",\n    ")+"\n  }")
	}
	return call("read_parquet", "union_by_name = true")
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

// literalGlob returns the glob pattern that matches only the given path.
func literalGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}
