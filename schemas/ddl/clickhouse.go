package ddl

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
)

func clickHouse() *Dialect {
	return &Dialect{
		Name: "clickhouse", quote: backslashed("`"), text: backslashed("'"),
		limit: limits{path: 2, beside: true}, formats: []string{"parquet", "ndjson"},
		create: createClickHouse, load: loadClickHouse,
		refuse: func(w Written) string {
			if s := w.scheme(); s != "" && s != "s3" && s != "gs" {
				return "ClickHouse's s3() reads s3:// and gs://"
			}
			return ""
		},
	}
}

// clickHouseType gives a list as an array of elements that may be null: an
// array itself cannot be.
func clickHouseType(c schemas.Column) string {
	of, list := elem(c.Type)
	name := scalars{"String", "Int64", "Float64", "Bool", "Date32", "DateTime64(6, 'UTC')", "Decimal(%d, %d)"}.of(of)
	switch {
	case list:
		return "Array(Nullable(" + name + "))"
	case required(c):
		return name
	}
	return "Nullable(" + name + ")"
}

// createClickHouse makes a plain MergeTree: each load brings every result
// once, so that there is nothing to replace by key.
func createClickHouse(d *Dialect, s *script, t Table) {
	order := "tuple()"
	if id := resultID(t); id != "" {
		order = d.quote(id)
	}
	end := ") ENGINE = MergeTree ORDER BY " + order
	if t.Comment != "" {
		end += " COMMENT " + d.text(oneLine(t.Comment))
	}
	s.items("CREATE TABLE IF NOT EXISTS "+d.table(t)+" (", each(t, func(c schemas.Column) string {
		return d.quote(c.Name) + " " + clickHouseType(c) + " COMMENT " + d.text(comment(c))
	}), end+";")
}

// mostAlternatives is how many parts one pattern {a,b} names.
const mostAlternatives = 200

func loadClickHouse(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.scheme() == "" {
		s.note("file() reads where the server runs, below its user_files_path; clickhouse-local reads any path.")
	}
	s.note("clickhouse-client stops at an error, which this relies on: leave --ignore-error out.")
	s.noNullLists(t, "ClickHouse", "")
	beside := d.beside(t)
	s.line("CREATE OR REPLACE TABLE %s AS %s;", beside, d.table(t))
	if !w.empty(o) {
		for _, objects := range chunks(w.objects(o), mostAlternatives) {
			names := strings.Join(d.names(t), ",\n  ")
			s.line("INSERT INTO %s (\n  %s\n)\nSELECT\n  %s\nFROM %s%s;", beside, names, names, d.function(t, w, objects), clickHouseSettings(w))
		}
	}
	if wrong := w.wrongCount(o); wrong != "" {
		s.line("SELECT throwIf(count() %s, %s) FROM %s;", wrong, d.text(notWhole), beside)
	}
	s.line("EXCHANGE TABLES %s AND %s;\nDROP TABLE %s;", beside, d.table(t), beside)
}

// function is the table function that reads objects of the output. The types
// are given, so that a column that older parts lack is null.
func (d *Dialect) function(t Table, w Written, objects []string) string {
	format := "Parquet"
	if w.Format == "ndjson" {
		format = "JSONEachRow"
	}
	structure := strings.Join(each(t, func(c schemas.Column) string {
		c.Required = c.From.Kind == schemas.FromResultID
		return d.quote(c.Name) + " " + clickHouseType(c)
	}), ", ")
	object := objects[0]
	if len(objects) > 1 {
		object = "{" + strings.Join(objects, ",") + "}"
	}
	name, place := "file", w.Path+object
	if w.scheme() != "" {
		name, place = "s3", w.address()+object
	}
	return fmt.Sprintf("%s(\n  %s,\n  %s,\n  %s\n)", name, d.text(place), d.text(format), d.text(structure))
}

// clickHouseSettings let RFC 3339 be read, and a null in a column that takes none
// fail: it would become an empty text or 0.
func clickHouseSettings(w Written) string {
	settings := "\nSETTINGS insert_null_as_default = 0"
	if w.Format == "ndjson" {
		settings += ", date_time_input_format = 'best_effort'"
	}
	return settings
}
