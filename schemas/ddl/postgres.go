package ddl

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
)

func postgres() *Dialect {
	return &Dialect{
		Name: "postgres", quote: doubled(`"`), text: doubled("'"),
		limit: limits{
			columns: 1600, bytes: 63, path: 3,
			reserved: []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"},
		},
		types: types{
			text: "text", integer: "bigint", float: "double precision", boolean: "boolean", date: "date",
			timestamp: "timestamptz", decimal: "numeric(%d, %d)", list: "%s[]",
		},
		constraint: func(t Table, c schemas.Column) string {
			if c.From.Kind == schemas.FromResultID && t.List == "" {
				return " PRIMARY KEY"
			}
			return notNull(t, c)
		},
		exact: true, formats: []string{"ndjson", "csv"},
		load: loadPostgres,
		refuse: func(w Written) string {
			if s := w.scheme(); s != "" && s != "s3" {
				return "psql reads files, and s3:// by the aws command; copy it to one of these"
			}
			if w.Dataset() && !w.Known {
				return "psql reads no pattern, and no run has written its list of parts yet; run the definition first"
			}
			return ""
		},
	}
}

// loadPostgres lets psql copy the files into a temporary table, which exists
// until the transaction ends. psql stops at the first error, because the
// server's transaction does not notice that \copy could not open a file. The
// rows are counted for clients that continue anyway.
func loadPostgres(d *Dialect, s *script, t Table, w Written, _ Options) {
	s.note(`For psql 15 or newer, with -v ON_ERROR_STOP=1: \copy reads the files where psql runs.`)
	value := d.fromJSON
	if w.Format == "csv" {
		value = func(c schemas.Column) string { return d.fromText(c, len(t.Columns) == 1) }
		s.note(`psql before 18 ends its input at a line that is \. alone, also within a value: that fails, and the table stays as it is; NDJSON has no such lines.`)
	}
	if w.Format == "csv" && w.Dataset() {
		s.note("COPY takes CSV by position and checks the names: a part that lacks a column that came later fails; NDJSON parts do not.")
	}
	stage := t.loading()
	s.line(`\set ON_ERROR_STOP on`)
	s.line("BEGIN;")
	if w.Format == "csv" {
		all := t.Columns // all columns of the files in order, also those that the table lacks
		if w.Known {
			all = w.Columns
		}
		texts := each(all, func(c schemas.Column) string { return d.quote(c.Name) + " text" })
		s.items("CREATE TEMPORARY TABLE "+stage+" (", texts, ") ON COMMIT DROP;")
	} else {
		s.line("CREATE TEMPORARY TABLE %s (result jsonb) ON COMMIT DROP;", stage)
	}
	for _, object := range w.objects(Options{}) {
		s.line(`\copy %s FROM %s WITH (%s)`, stage, d.source(w, object), pgFormat(w))
	}
	if wrong := w.wrongCount(Options{}); wrong != "" {
		s.line("DO %s;", d.text("BEGIN IF (SELECT count(*) FROM "+stage+") "+wrong+" THEN RAISE EXCEPTION "+d.text(notWhole)+"; END IF; END"))
	}
	s.line("DELETE FROM %s;", d.path(t.Name))
	s.insert("INSERT INTO "+d.path(t.Name), each(t.Columns, d.column), each(t.Columns, value), stage)
	s.line("COMMIT;")
}

// source returns what \copy reads: a file, or a program that prints it.
func (d *Dialect) source(w Written, object string) string {
	codec := map[string]string{"gzip": "gzip -dc", "zstd": "zstd -dcq"}[w.Compression]
	file := shellQuote(w.Path + object)
	if w.scheme() == "s3" {
		fetch := "aws s3 cp"
		if w.Endpoint != "" {
			fetch += " --endpoint-url " + shellQuote(w.Endpoint)
		}
		if w.Region != "" {
			fetch += " --region " + shellQuote(w.Region)
		}
		fetch += " " + file + " -"
		if codec != "" {
			fetch += " | " + codec
		}
		return "PROGRAM " + d.text(fetch)
	}
	if codec != "" {
		return "PROGRAM " + d.text(codec+" "+file)
	}
	return d.text(w.Path + object)
}

// pgFormat returns the options of COPY. A line of JSON is read as one field, because
// it holds none of the control characters that divide and quote fields here.
func pgFormat(w Written) string {
	if w.Format == "csv" {
		return "FORMAT csv, HEADER match, ENCODING 'UTF8'"
	}
	return `FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', ENCODING 'UTF8'`
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// fromText returns an SQL expression that turns the text of a CSV field into
// the column's type. If the field is alone on its line, "" stands for null.
func (d *Dialect) fromText(c schemas.Column, alone bool) string {
	name := d.quote(c.Name)
	if alone {
		name = "nullif(" + name + ", '')"
	}
	switch {
	case c.Type.Kind == schemas.String:
		return name
	case c.ListAs == schemas.ListJSON:
		return d.pgArray(name+"::jsonb", c.Type)
	case c.Type.Kind == schemas.List:
		return fmt.Sprintf(`CASE WHEN %[1]s IS NULL THEN NULL WHEN %[1]s = '' THEN '{}' ELSE ARRAY(`+
			`SELECT (CASE WHEN m[1] = '\N' THEN NULL ELSE regexp_replace(m[1], '\\(.)', '\1', 'g') END)::%[2]s `+
			`FROM regexp_matches(%[1]s || '|', '((?:[^|\\]|\\.)*)\|', 'g') WITH ORDINALITY AS r(m, n) ORDER BY n) END`,
			name, d.types.of(*c.Type.Elem))
	}
	return name + "::" + d.types.of(c.Type)
}

// fromJSON returns an SQL expression that takes the column's value from a line of JSON.
func (d *Dialect) fromJSON(c schemas.Column) string {
	switch c.Type.Kind {
	case schemas.List:
		return d.pgArray("(result -> "+d.text(c.Name)+")", c.Type)
	case schemas.String:
		return "result ->> " + d.text(c.Name)
	}
	return "(result ->> " + d.text(c.Name) + ")::" + d.types.of(c.Type)
}

// pgArray returns an SQL expression that makes an array from a JSON array, and null from anything
// else.
func (d *Dialect) pgArray(json string, list schemas.Type) string {
	return fmt.Sprintf("CASE WHEN jsonb_typeof(%[1]s) = 'array' THEN ARRAY("+
		"SELECT e::%[2]s FROM jsonb_array_elements_text(%[1]s) WITH ORDINALITY AS r(e, n) ORDER BY n) END", json, d.types.of(*list.Elem))
}
