package ddl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas"
)

func clickHouse() *Dialect {
	return &Dialect{
		Name: "clickhouse", quote: backslashed("`"), text: backslashed("'"),
		limit: limits{path: 2, beside: true}, formats: []string{"parquet", "ndjson"},
		// The elements of an array may be null; an array itself cannot be.
		types: types{
			text: "String", integer: "Int64", float: "Float64", boolean: "Bool", date: "Date32",
			timestamp: "DateTime64(6, 'UTC')", decimal: "Decimal(%d, %d)", list: "Array(Nullable(%s))", null: "Nullable(%s)",
		},
		constraint: func(Table, schemas.Column) string { return "" }, // it is part of the type
		// A plain MergeTree suffices, because each load holds every result once and
		// so replaces nothing by key.
		engine: func(d *Dialect, t Table) string {
			order := "tuple()"
			if id := slices.IndexFunc(t.Columns, isID); id >= 0 {
				order = d.column(t.Columns[id])
			}
			return " ENGINE = MergeTree ORDER BY " + order
		},
		columnComment: " COMMENT %s", tableComment: " COMMENT %s",
		load: loadClickHouse,
		refuse: func(w Written) string {
			if s := w.scheme(); s != "" && s != "s3" && s != "gs" {
				return "ClickHouse's s3() reads s3:// and gs://"
			}
			return ""
		},
	}
}

// mostAlternatives is how many parts one pattern {a,b} may name.
const mostAlternatives = 200

func loadClickHouse(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.scheme() == "" {
		s.note("file() reads where the server runs, below its user_files_path; clickhouse-local reads any path.")
	}
	s.note("clickhouse-client stops at an error, which this relies on: leave --ignore-error out.")
	s.noNullLists(t, "ClickHouse", "")
	beside := d.beside(t)
	s.line("CREATE OR REPLACE TABLE %s AS %s;", beside, d.path(t.Name))
	if !w.empty(o) {
		names := each(t.Columns, d.column)
		for objects := range slices.Chunk(w.objects(o), mostAlternatives) {
			s.insert("INSERT INTO "+beside, names, names, d.function(t, w, objects)+clickHouseSettings(w))
		}
	}
	if wrong := w.wrongCount(o); wrong != "" {
		s.line("SELECT throwIf(count() %s, %s) FROM %s;", wrong, d.text(notWhole), beside)
	}
	s.line("EXCHANGE TABLES %s AND %s;\nDROP TABLE %s;", beside, d.path(t.Name), beside)
}

// function returns the call of the table function that reads objects. The call
// gives the columns' types, so that a column that older parts lack is null.
func (d *Dialect) function(t Table, w Written, objects []string) string {
	format := "Parquet"
	if w.Format == "ndjson" {
		format = "JSONEachRow"
	}
	structure := strings.Join(each(t.Columns, func(c schemas.Column) string {
		c.Required = false
		return d.typed(c)
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

// clickHouseSettings returns settings with which ClickHouse reads RFC 3339. They also
// refuse a null in a column that takes none. Such a null would become an empty text or 0.
func clickHouseSettings(w Written) string {
	settings := "\nSETTINGS insert_null_as_default = 0"
	if w.Format == "ndjson" {
		settings += ", date_time_input_format = 'best_effort'"
	}
	return settings
}
