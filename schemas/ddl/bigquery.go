package ddl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/formetl/formetl/schemas"
)

func bigQuery() *Dialect {
	return &Dialect{
		Name: "bigquery", quote: backslashed("`"), text: backslashed("'"),
		limit: limits{columns: 10_000, runes: 300, path: 3, beside: true, problem: bigQueryName},
		types: types{
			text: "STRING", integer: "INT64", float: "FLOAT64", boolean: "BOOL", date: "DATE", timestamp: "TIMESTAMP",
			decimal: "NUMERIC(%d, %d)", wide: "BIGNUMERIC(%d, %d)", list: "ARRAY<%s>",
		},
		constraint: func(t Table, c schemas.Column) string {
			if isList(c) { // an array is never null in BigQuery
				return ""
			}
			return notNull(t, c)
		},
		columnComment: " OPTIONS (description = %s)", tableComment: "\nOPTIONS (description = %s)",
		formats: []string{"parquet", "ndjson"},
		load:    loadBigQuery,
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

// bigQueryName returns why BigQuery refuses a column's name, or "". It follows
// BigQuery's rules for flexible column names.
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

// mostURIs is how many files one LOAD DATA statement names. A statement is
// limited to 1 MB.
const mostURIs = 1000

func loadBigQuery(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.scheme() == "s3" {
		bucket, key := w.bucket()
		s.note("BigQuery reads Cloud Storage only: copy %s to gs://%s/%s (Storage Transfer Service), or give another --location.", w.Path, bucket, key)
		w.Path = "gs://" + bucket + "/" + key
	}
	if slices.ContainsFunc(t.Columns, isList) {
		s.note("An array of BigQuery is never null: a null list is loaded as an empty one; a null in a list fails.")
	}
	if w.empty(o) {
		s.line("DELETE FROM %s WHERE TRUE;", d.path(t.Name))
		return
	}
	how := "OVERWRITE"
	for objects := range slices.Chunk(w.objects(o), mostURIs) {
		s.items("LOAD DATA "+how+" "+d.beside(t)+" (", each(t.Columns, d.typed), ")")
		s.items("FROM FILES (", d.bigQueryOptions(t, w, o, objects), ");")
		how = "INTO"
	}
	if wrong := w.wrongCount(o); wrong != "" {
		s.line("ASSERT NOT ((SELECT COUNT(*) FROM %s) %s) AS %s;", d.beside(t), wrong, d.text(notWhole))
	}
	s.line("BEGIN TRANSACTION;\nDELETE FROM %s WHERE TRUE;", d.path(t.Name))
	names := each(t.Columns, d.column)
	s.insert("INSERT INTO "+d.path(t.Name), names, names, d.beside(t))
	s.line("COMMIT TRANSACTION;\nDROP TABLE %s;", d.beside(t))
}

func (d *Dialect) bigQueryOptions(t Table, w Written, o Options, objects []string) []string {
	switch {
	case w.named(o) || !w.Dataset():
	case w.Hive: // one asterisk also matches folders
		objects = []string{"dt=*" + w.extension()}
	default:
		objects = []string{"part-*" + w.extension()}
	}
	uris := each(objects, func(object string) string { return d.text(w.Path + object) })
	options := []string{"format = 'PARQUET'", "enable_list_inference = TRUE"}
	if w.Format == "ndjson" {
		options = []string{"format = 'JSON'"}
	}
	odd := func(c schemas.Column) bool { return !plainName.MatchString(c.Name) }
	if w.Format == "parquet" && slices.ContainsFunc(t.Columns, odd) {
		options = append(options, "column_name_character_map = 'V2'")
	}
	return append(options, "uris = [\n    "+strings.Join(uris, ",\n    ")+"\n  ]")
}
