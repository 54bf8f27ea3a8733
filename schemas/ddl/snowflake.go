package ddl

import (
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/schemas"
)

func snowflake() *Dialect {
	return &Dialect{
		Name: "snowflake", quote: doubled(`"`), text: doubledEscaped,
		limit: limits{runes: 255, path: 3, scale: 37}, formats: []string{"parquet", "ndjson", "json"},
		create: createSnowflake, load: loadSnowflake,
		refuse: func(w Written) string {
			if s := w.scheme(); s != "" && s != "s3" && s != "gs" {
				return "Snowflake's stages are on s3://, gs:// or the files of this machine"
			}
			return ""
		},
	}
}

// snowflakeType gives an instant as TIMESTAMP_LTZ, which is stored in UTC and
// is what Snowflake makes of Parquet's instants: TIMESTAMP_TZ would keep an
// offset that nobody gave, TIMESTAMP_NTZ would lose that it is an instant.
func snowflakeType(t schemas.Type) string {
	if _, list := elem(t); list {
		return "ARRAY"
	}
	return scalars{"VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP_LTZ(6)", "NUMBER(%d, %d)"}.of(t)
}

func createSnowflake(d *Dialect, s *script, t Table) {
	end := ")"
	if t.Comment != "" {
		end += " COMMENT = " + d.text(oneLine(t.Comment))
	}
	s.items("CREATE TABLE IF NOT EXISTS "+d.table(t)+" (", each(t, func(c schemas.Column) string {
		return d.quote(c.Name) + " " + snowflakeType(c.Type) + notNull(c) + " COMMENT " + d.text(comment(c))
	}), end+";")
}

// mostFiles is how many files one COPY INTO takes.
const mostFiles = 1000

// loadSnowflake replaces the rows by one statement within a block, which ends at
// the first error whatever the client does after one: a failed statement does
// not end Snowflake's transactions.
func loadSnowflake(d *Dialect, s *script, t Table, w Written, o Options) {
	if w.empty(o) {
		s.line("DELETE FROM %s;\nCOMMIT;", d.table(t))
		return
	}
	stage := d.path(append(slices.Clone(t.Name[:len(t.Name)-1]), t.loading())) // and the table of the same name
	_, objects := stageFiles(w, o)
	d.snowflakeStage(s, w, o, stage)
	s.items("CREATE OR REPLACE TEMPORARY TABLE "+stage+" (", each(t, func(c schemas.Column) string {
		return d.quote(c.Name) + " " + snowflakeType(c.Type)
	}), ");")
	block := &script{}
	block.line("DECLARE\n  loaded INTEGER;\n  not_whole EXCEPTION (-20001, %s);\nBEGIN", d.text(notWhole))
	for _, files := range chunks(objects, mostFiles) {
		block.line("COPY INTO %s\nFROM @%s\n%s\n%s\nMATCH_BY_COLUMN_NAME = CASE_SENSITIVE\nON_ERROR = ABORT_STATEMENT\nFORCE = TRUE;",
			stage, stage, d.files(w, o, files), snowflakeFormat(w))
	}
	if wrong := w.wrongCount(o); wrong != "" {
		block.line("SELECT COUNT(*) INTO :loaded FROM %s;\nIF (loaded %s) THEN\n  RAISE not_whole;\nEND IF;", stage, wrong)
	}
	names := strings.Join(d.names(t), ",\n  ")
	block.line("INSERT OVERWRITE INTO %s (\n  %s\n)\nSELECT\n  %s\nFROM %s;\nEND;", d.table(t), names, names, stage)
	s.line("EXECUTE IMMEDIATE %s;", d.text(strings.TrimSuffix(block.String(), "\n")))
	s.line("COMMIT;") // of sessions that do not of themselves
}

// snowflakeStage makes the stage that has the output's files.
func (d *Dialect) snowflakeStage(s *script, w Written, o Options, stage string) {
	folder, objects := stageFiles(w, o)
	if w.scheme() == "" {
		s.line("CREATE OR REPLACE TEMPORARY STAGE %s;", stage)
		for _, object := range objects {
			to := "@" + stage + "/"
			if sub := path.Dir(object); sub != "." && w.named(o) {
				to += sub + "/"
			}
			s.line("PUT %s %s AUTO_COMPRESS = FALSE OVERWRITE = TRUE;", d.text("file://"+folder+object), d.text(to))
		}
		return
	}
	integration := o.Integration
	if integration == "" {
		integration = "formetl"
		s.note("Give the name of your storage integration by --integration.")
	}
	url := folder
	if w.scheme() == "gs" {
		url = "gcs" + strings.TrimPrefix(url, "gs")
	}
	s.line("CREATE OR REPLACE TEMPORARY STAGE %s URL = %s STORAGE_INTEGRATION = %s;", stage, d.text(url), d.quote(integration))
}

// stageFiles divides an output into a folder and the files in it.
func stageFiles(w Written, o Options) (folder string, objects []string) {
	if w.Dataset() {
		return w.Path, w.objects(o)
	}
	dir, file := path.Split(w.Path)
	return dir, []string{file}
}

// files says which files of the stage are loaded.
func (d *Dialect) files(w Written, o Options, files []string) string {
	if w.Dataset() && !w.named(o) {
		return "PATTERN = " + d.text(".*part-[^/]*"+strings.ReplaceAll(w.extension(), ".", "[.]"))
	}
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = d.text(f)
	}
	return "FILES = (\n  " + strings.Join(quoted, ",\n  ") + "\n)"
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
