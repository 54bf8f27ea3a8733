package ddl

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/formetl/formetl/schemas"
)

func bigQuery() *Dialect {
	return &Dialect{
		Name: "bigquery", quote: backslashed("`"), text: backslashed("'"),
		limit:   limits{columns: 10_000, runes: 300, path: 3, beside: true, problem: bigQueryName},
		formats: []string{"parquet", "ndjson"},
		create:  createBigQuery, load: loadBigQuery,
		refuse: func(w Written) string {
			switch {
			case w.scheme() != "gs" && w.scheme() != "s3":
				return "BigQuery reads gs:// only; copy it to Cloud Storage and give --location gs://…"
			case w.text() && w.Compression == "zstd":
				return "BigQuery reads no zstd around text; write gzip or Parquet"
			}
			return ""
		},
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bigQueryName says why BigQuery refuses a column's name, by its rules for
// flexible column names.
func bigQueryName(name string) string {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER", "_CHANGE_SEQUENCE_NUMBER", "_CHANGE_TYPE", "_CHANGE_TIMESTAMP"} {
		if strings.HasPrefix(upper, prefix) {
			return "begins with " + prefix + ", which BigQuery keeps for itself"
		}
	}
	for _, r := range name {
		if !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Pc, unicode.Pd) && !strings.ContainsRune("&%=+:'<>#| ", r) {
			return fmt.Sprintf("holds %q, which no column of BigQuery can", r)
		}
	}
	return ""
}

func bigQueryType(t schemas.Type) string {
	of, list := elem(t)
	decimal := "BIGNUMERIC(%d, %d)"
	if of.Scale <= 9 && of.Precision-of.Scale <= 29 {
		decimal = "NUMERIC(%d, %d)"
	}
	name := scalars{"STRING", "INT64", "FLOAT64", "BOOL", "DATE", "TIMESTAMP", decimal}.of(of)
	if list {
		return "ARRAY<" + name + ">"
	}
	return name
}

// createBigQuery leaves NOT NULL off lists: an array is never null there.
func createBigQuery(d *Dialect, s *script, t Table) {
	end := ")"
	if t.Comment != "" {
		end += "\nOPTIONS (description = " + d.text(oneLine(t.Comment)) + ")"
	}
	s.items("CREATE TABLE IF NOT EXISTS "+d.table(t)+" (", each(t, func(c schemas.Column) string {
		null := notNull(c)
		if c.Type.Kind == schemas.List {
			null = ""
		}
		return d.quote(c.Name) + " " + bigQueryType(c.Type) + null + " OPTIONS (description = " + d.text(comment(c)) + ")"
	}), end+";")
}

// mostURIs is how many files one LOAD DATA names here: a statement has a limit
// of its own, of 1 MB.
const mostURIs = 1000

func loadBigQuery(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.scheme() == "s3" {
		bucket, key := w.bucket()
		s.note("BigQuery reads Cloud Storage only: copy %s to gs://%s/%s (Storage Transfer Service), or give another --location.", w.Path, bucket, key)
		w.Path = "gs://" + bucket + "/" + key
	}
	s.noNullLists(t, "BigQuery", "; a null in a list fails")
	if w.empty(o) {
		s.line("DELETE FROM %s WHERE TRUE;", d.table(t))
		return
	}
	columns := each(t, func(c schemas.Column) string { return d.quote(c.Name) + " " + bigQueryType(c.Type) })
	for i, objects := range chunks(w.objects(o), mostURIs) {
		how := "INTO"
		if i == 0 {
			how = "OVERWRITE"
		}
		s.items("LOAD DATA "+how+" "+d.beside(t)+" (", columns, ")")
		s.items("FROM FILES (", d.bigQueryOptions(t, w, o, objects), ");")
	}
	if wrong := w.wrongCount(o); wrong != "" {
		s.line("ASSERT NOT ((SELECT COUNT(*) FROM %s) %s) AS %s;", d.beside(t), wrong, d.text(notWhole))
	}
	names := strings.Join(d.names(t), ",\n  ")
	s.line("BEGIN TRANSACTION;\nDELETE FROM %s WHERE TRUE;", d.table(t))
	s.line("INSERT INTO %s (\n  %s\n)\nSELECT\n  %s\nFROM %s;", d.table(t), names, names, d.beside(t))
	s.line("COMMIT TRANSACTION;\nDROP TABLE %s;", d.beside(t))
}

func (d *Dialect) bigQueryOptions(t Table, w Written, o Options, objects []string) []string {
	uris := make([]string, len(objects))
	for i, object := range objects {
		if !w.named(o) { // one asterisk stands for folders, too
			object = strings.TrimSuffix(w.pattern(), "part-*"+w.extension())
			object = strings.TrimSuffix(object, "*/")
			if object == "" {
				object = "part-"
			}
			object += "*" + w.extension()
		}
		uris[i] = d.text(w.Path + object)
	}
	options := []string{"format = 'PARQUET'", "enable_list_inference = TRUE"}
	if w.Format == "ndjson" {
		options = []string{"format = 'JSON'"}
	}
	for _, c := range t.Columns {
		if w.Format == "parquet" && !plainName.MatchString(c.Name) {
			options = append(options, "column_name_character_map = 'V2'")
			break
		}
	}
	return append(options, "uris = [\n    "+strings.Join(uris, ",\n    ")+"\n  ]")
}
