package ddl

import (
	"path"
	"slices"
	"strings"
)

func snowflake() *Dialect {
	return &Dialect{
		Name: "snowflake", quote: doubled(`"`), text: doubledEscaped,
		limit: limits{runes: 255, path: 3, scale: 37}, formats: []string{"parquet", "ndjson", "json"},
		// An instant is TIMESTAMP_LTZ, which is stored in UTC. Snowflake reads
		// Parquet's instants as this type. TIMESTAMP_TZ would keep an offset that nobody
		// gave, and TIMESTAMP_NTZ would lose that it is an instant.
		types: types{
			text: "VARCHAR", integer: "BIGINT", float: "DOUBLE", boolean: "BOOLEAN", date: "DATE",
			timestamp: "TIMESTAMP_LTZ(6)", decimal: "NUMBER(%d, %d)", list: "ARRAY",
		},
		constraint: notNull, columnComment: " COMMENT %s", tableComment: " COMMENT = %s",
		load: loadSnowflake,
		refuse: func(w Written) string {
			if s := w.scheme(); s != "" && s != "s3" && s != "gs" {
				return "Snowflake's stages are on s3://, gs:// or the files of this machine"
			}
			return ""
		},
	}
}

// mostFiles is how many files one COPY INTO takes.
const mostFiles = 1000

// loadSnowflake writes a block that replaces the rows by one statement and ends at the
// first error. A transaction would not do, because a failed statement does not end it.
func loadSnowflake(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.empty(o) {
		s.line("DELETE FROM %s;\nCOMMIT;", d.path(t.Name))
		return
	}
	stage := d.path(append(slices.Clone(t.Name[:len(t.Name)-1]), t.loading())) // the name of the stage and of the temporary table
	folder, objects := w.Path, w.objects(o)
	if !w.Dataset() {
		var file string
		folder, file = path.Split(w.Path)
		objects = []string{file}
	}
	if w.scheme() == "" {
		d.putFiles(s, stage, folder, objects, w.named(o))
	} else {
		d.remoteStage(s, stage, folder, o.Integration)
	}
	s.items("CREATE OR REPLACE TEMPORARY TABLE "+stage+" (", each(t.Columns, d.typed), ");")
	block := &script{}
	block.line("DECLARE\n  loaded INTEGER;\n  not_whole EXCEPTION (-20001, %s);\nBEGIN", d.text(notWhole))
	for files := range slices.Chunk(objects, mostFiles) {
		block.line("COPY INTO %s\nFROM @%s\n%s\n%s\nMATCH_BY_COLUMN_NAME = CASE_SENSITIVE\nON_ERROR = ABORT_STATEMENT\nFORCE = TRUE;",
			stage, stage, d.files(w, o, files), snowflakeFormat(w))
	}
	if wrong := w.wrongCount(o); wrong != "" {
		block.line("SELECT COUNT(*) INTO :loaded FROM %s;\nIF (loaded %s) THEN\n  RAISE not_whole;\nEND IF;", stage, wrong)
	}
	names := each(t.Columns, d.column)
	block.insert("INSERT OVERWRITE INTO "+d.path(t.Name), names, names, stage)
	s.line("EXECUTE IMMEDIATE %s;", d.text(block.String()+"END;"))
	s.line("COMMIT;") // for sessions without autocommit
}

// putFiles makes a stage and copies files of this machine to it. If named is set,
// objects are parts, which keep their folder. Otherwise they are patterns, which do not.
func (d *Dialect) putFiles(s *script, stage, folder string, objects []string, named bool) {
	s.line("CREATE OR REPLACE TEMPORARY STAGE %s;", stage)
	for _, object := range objects {
		to := "@" + stage + "/"
		if sub := path.Dir(object); sub != "." && named {
			to += sub + "/"
		}
		s.line("PUT %s %s AUTO_COMPRESS = FALSE OVERWRITE = TRUE;", d.text("file://"+folder+object), d.text(to))
	}
}

// remoteStage makes a stage for a folder in a bucket.
func (d *Dialect) remoteStage(s *script, stage, folder, integration string) {
	if integration == "" {
		integration = "formetl"
		s.note("Give the name of your storage integration by --integration.")
	}
	if key, ok := strings.CutPrefix(folder, "gs://"); ok {
		folder = "gcs://" + key
	}
	s.line("CREATE OR REPLACE TEMPORARY STAGE %s URL = %s STORAGE_INTEGRATION = %s;", stage, d.text(folder), d.quote(integration))
}

// files returns the clause that says which files of the stage are loaded.
func (d *Dialect) files(w Written, o Options, files []string) string {
	if w.Dataset() && !w.named(o) {
		return "PATTERN = " + d.text(".*part-[^/]*"+strings.ReplaceAll(w.extension(), ".", "[.]"))
	}
	return "FILES = (\n  " + strings.Join(each(files, d.text), ",\n  ") + "\n)"
}

func snowflakeFormat(w Written) string {
	switch w.Format {
	case "ndjson":
		return "FILE_FORMAT = (TYPE = JSON COMPRESSION = AUTO TIMESTAMP_FORMAT = AUTO)"
	case "json":
		return "FILE_FORMAT = (TYPE = JSON COMPRESSION = AUTO TIMESTAMP_FORMAT = AUTO STRIP_OUTER_ARRAY = TRUE)"
	}
	return "FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)"
}
