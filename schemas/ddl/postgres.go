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
		exact: true, formats: []string{"ndjson", "csv"},
		create: createPostgres, load: loadPostgres,
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

func postgresType(t schemas.Type) string {
	of, list := elem(t)
	name := scalars{"text", "bigint", "double precision", "boolean", "date", "timestamptz", "numeric(%d, %d)"}.of(of)
	if list {
		return name + "[]"
	}
	return name
}

func createPostgres(d *Dialect, s *script, t Table) {
	s.items("CREATE TABLE IF NOT EXISTS "+d.table(t)+" (", each(t, func(c schemas.Column) string {
		key := notNull(c)
		if c.From.Kind == schemas.FromResultID && t.List == "" {
			key = " PRIMARY KEY"
		}
		return d.quote(c.Name) + " " + postgresType(c.Type) + key
	}), ");")
	d.commentOn(s, t)
}

// loadPostgres has psql copy the files into a temporary table, which lives as
// long as the transaction. It has psql stop at the first error: a file that \copy cannot open is
// one of psql's own, of which the server's transaction knows nothing. Where that
// is not heeded, the rows are counted.
func loadPostgres(d *Dialect, s *script, t Table, w Written, _ Options) {
	s.note(`For psql 15 or newer, with -v ON_ERROR_STOP=1: \copy reads the files where psql runs.`)
	if w.Format == "csv" {
		s.note(`psql before 18 ends its input at a line that is \. alone, also within a value: that fails, and the table stays as it is; NDJSON has no such lines.`)
	}
	if w.Format == "csv" && w.Dataset() {
		s.note("COPY takes CSV by position and checks the names: a part that lacks a column that came later fails; NDJSON parts do not.")
	}
	stage := t.loading()
	s.line(`\set ON_ERROR_STOP on`)
	s.line("BEGIN;")
	if w.Format == "csv" {
		s.items("CREATE TEMPORARY TABLE "+stage+" (", d.pgColumns(t, w), ") ON COMMIT DROP;")
	} else {
		s.line("CREATE TEMPORARY TABLE %s (result jsonb) ON COMMIT DROP;", stage)
	}
	for _, object := range w.objects(Options{}) {
		s.line(`\copy %s FROM %s WITH (%s)`, stage, d.source(w, object), pgFormat(w))
	}
	if wrong := w.wrongCount(Options{}); wrong != "" {
		s.line("DO %s;", d.text("BEGIN IF (SELECT count(*) FROM "+stage+") "+wrong+" THEN RAISE EXCEPTION "+d.text(notWhole)+"; END IF; END"))
	}
	s.line("DELETE FROM %s;", d.table(t))
	s.items("INSERT INTO "+d.table(t)+" (", d.names(t), ")")
	s.items("SELECT", each(t, func(c schemas.Column) string {
		if w.Format == "csv" {
			return d.fromText(c, len(t.Columns) == 1)
		}
		return d.fromJSON(c)
	}), "FROM "+stage+";")
	s.line("COMMIT;")
}

// pgColumns are all columns of the files, by position, also those that the
// table does not have.
func (d *Dialect) pgColumns(t Table, w Written) []string {
	if w.Known {
		t.Columns = w.Columns
	}
	return each(t, func(c schemas.Column) string { return d.quote(c.Name) + " text" })
}

// source is what \copy reads: a file, or a program that writes it.
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

// pgFormat are COPY's options. A line of JSON is one field: it holds none of
// the control characters that divide and quote fields here.
func pgFormat(w Written) string {
	if w.Format == "csv" {
		return "FORMAT csv, HEADER match, ENCODING 'UTF8'"
	}
	return `FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', ENCODING 'UTF8'`
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// fromText turns the text of a CSV field into the column's type. The only
// field of a line is "" for null.
func (d *Dialect) fromText(c schemas.Column, alone bool) string {
	name := d.quote(c.Name)
	if alone {
		name = "nullif(" + name + ", '')"
	}
	of, list := elem(c.Type)
	switch {
	case list && c.ListAs == schemas.ListJSON:
		return pgArray(name+"::jsonb", of)
	case list:
		return fmt.Sprintf(`CASE WHEN %[1]s IS NULL THEN NULL WHEN %[1]s = '' THEN '{}' ELSE ARRAY(`+
			`SELECT (CASE WHEN m[1] = '\N' THEN NULL ELSE regexp_replace(m[1], '\\(.)', '\1', 'g') END)::%[2]s `+
			`FROM regexp_matches(%[1]s || '|', '((?:[^|\\]|\\.)*)\|', 'g') WITH ORDINALITY AS r(m, n) ORDER BY n) END`,
			name, postgresType(of))
	case c.Type.Kind == schemas.String:
		return name
	}
	return name + "::" + postgresType(c.Type)
}

// fromJSON takes the column's value out of a line of JSON.
func (d *Dialect) fromJSON(c schemas.Column) string {
	of, list := elem(c.Type)
	switch {
	case list:
		return pgArray("(result -> "+d.text(c.Name)+")", of)
	case c.Type.Kind == schemas.String:
		return "result ->> " + d.text(c.Name)
	}
	return "(result ->> " + d.text(c.Name) + ")::" + postgresType(c.Type)
}

// pgArray makes an array of a JSON array, null of anything else.
func pgArray(json string, of schemas.Type) string {
	return fmt.Sprintf("CASE WHEN jsonb_typeof(%[1]s) = 'array' THEN ARRAY("+
		"SELECT e::%[2]s FROM jsonb_array_elements_text(%[1]s) WITH ORDINALITY AS r(e, n) ORDER BY n) END", json, postgresType(of))
}
