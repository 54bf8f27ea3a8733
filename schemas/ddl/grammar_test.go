package ddl_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

// grammar are the statements of the engines that are not run here, as their
// manuals give them: an outline of each must match one as a whole.
func grammar() map[string][]string {
	names := `T(?: , T)*`
	snow := `(?:VARCHAR|BIGINT|DOUBLE|BOOLEAN|DATE|TIMESTAMP_LTZ \( N \)|NUMBER \( N , N \)|ARRAY)`
	big := `(?:STRING|INT64|FLOAT64|BOOL|DATE|TIMESTAMP|(?:BIG)?NUMERIC \( N , N \))`
	big = `(?:` + big + `|ARRAY < ` + big + ` >)`
	red := `(?:VARCHAR \( N \)|BIGINT|DOUBLE PRECISION|BOOLEAN|DATE|TIMESTAMPTZ|DECIMAL \( N , N \)|SUPER)`
	red0 := strings.Replace(red, "TIMESTAMPTZ", "TIMESTAMP", 1)
	columns := func(column string) string { return `\( ` + column + `(?: , ` + column + `)* \)` }
	return map[string][]string{
		"snowflake": {
			`CREATE TABLE IF NOT EXISTS T ` + columns(`T `+snow+`(?: NOT NULL)? COMMENT S`) + `(?: COMMENT = S)?`,
			`CREATE OR REPLACE TEMPORARY STAGE T(?: URL = S STORAGE_INTEGRATION = T)?`,
			`PUT S S AUTO_COMPRESS = FALSE OVERWRITE = TRUE`, `DELETE FROM T`, `COMMIT`,
			`CREATE OR REPLACE TEMPORARY TABLE T ` + columns(`T `+snow), `EXECUTE IMMEDIATE S`,
		},
		"snowflake block": {
			`DECLARE loaded INTEGER`, `not_whole EXCEPTION \( - N , S \)`,
			`SELECT COUNT \( \* \) INTO : loaded FROM T`, `IF \( loaded (?:< >|=) N \) THEN RAISE not_whole`, `END IF`, `END`,
			`INSERT OVERWRITE INTO T \( ` + names + ` \) SELECT ` + names + ` FROM T`,
			`(?:BEGIN )?COPY INTO T FROM @ T (?:FILES = \( S(?: , S)* \)|PATTERN = S) FILE_FORMAT = \( TYPE = (?:` +
				`PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE|JSON COMPRESSION = AUTO TIMESTAMP_FORMAT = AUTO(?: STRIP_OUTER_ARRAY = TRUE)?` +
				`) \) MATCH_BY_COLUMN_NAME = CASE_SENSITIVE ON_ERROR = ABORT_STATEMENT FORCE = TRUE`,
		},
		"bigquery": {
			`CREATE TABLE IF NOT EXISTS T ` + columns(`T `+big+`(?: NOT NULL)? OPTIONS \( description = S \)`) + `(?: OPTIONS \( description = S \))?`,
			`LOAD DATA (?:OVERWRITE|INTO) T ` + columns(`T `+big) + ` FROM FILES \( format = S (?:, enable_list_inference = TRUE )?(?:, column_name_character_map = S )?, uris = \[ S(?: , S)* \] \)`,
			`ASSERT NOT \( \( SELECT COUNT \( \* \) FROM T \) (?:< >|=) N \) AS S`,
			`BEGIN TRANSACTION`, `COMMIT TRANSACTION`, `DELETE FROM T WHERE TRUE`, `DROP TABLE T`,
			`INSERT INTO T \( ` + names + ` \) SELECT ` + names + ` FROM T`,
		},
		"redshift": {
			`CREATE TABLE IF NOT EXISTS T ` + columns(`T `+red+`(?: NOT NULL)?`), `COMMENT ON (?:TABLE|COLUMN) T IS S`,
			`BEGIN`, `COMMIT`, `DELETE FROM T`, `DROP TABLE formetl_load`,
			`CREATE TEMPORARY TABLE formetl_load ` + columns(`T `+red0),
			`COPY formetl_load FROM S IAM_ROLE (?:default|S) FORMAT AS PARQUET FILLRECORD(?: SERIALIZETOJSON)? MANIFEST`,
			`INSERT INTO T \( ` + names + ` \) SELECT T(?: AT TIME ZONE S)?(?: , T(?: AT TIME ZONE S)?)* FROM formetl_load`,
		},
	}
}

// blockSuffix marks the rules within a block that is given as a text.
const blockSuffix = " block"

// checkGrammar reads a script by the dialect's rules. It gives the names that
// the script quotes.
func checkGrammar(t *testing.T, dialect, sql string) (quoted []string) {
	t.Helper()
	patterns := grammar()[dialect]
	for _, statement := range lexers()[strings.TrimSuffix(dialect, blockSuffix)].statements(t, sql) {
		for _, tok := range statement {
			if tok.kind == 'i' {
				quoted = append(quoted, tok.text)
			}
		}
		text := outline(statement)
		if patterns != nil && !slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(`^(?:` + p + `)$`).MatchString(text) }) {
			t.Errorf("%s: no rule of its manual allows\n%s", dialect, text)
		}
		if text == "EXECUTE IMMEDIATE S" {
			quoted = append(quoted, checkGrammar(t, dialect+blockSuffix, statement[2].text)...)
		}
	}
	return quoted
}

// TestGrammar holds every statement to its dialect's manual: names are quoted,
// quotes are closed, and what is quoted is the names, letter by letter.
func TestGrammar(t *testing.T) {
	for _, d := range ddl.Dialects() {
		t.Run(d.Name, func(t *testing.T) {
			table := everyType(t, d.Name == "bigquery")
			known := append([]string{"feedback__load", "formetl_load", "formetl"}, table.Name...)
			var names []string
			for _, c := range table.Columns {
				if c.Written() {
					names = append(names, c.Name)
				}
			}
			quoted := checkGrammar(t, d.Name, statements(t, d))
			for _, name := range quoted {
				if !slices.Contains(known, name) && !slices.Contains(names, name) {
					t.Errorf("%q is quoted and is no name", name)
				}
			}
			for _, name := range names {
				if !slices.Contains(quoted, name) {
					t.Errorf("the name %q is not there", name)
				}
			}
		})
	}
}

// TestGrammarRefuses shows that the rules are worth something.
func TestGrammarRefuses(t *testing.T) {
	l := lexers()["snowflake"]
	for _, sql := range []string{
		`CREATE TABLE IF NOT EXISTS t ( "a" VARCHAR COMMENT 'x' );`, `CREATE TABLE IF NOT EXISTS "t" ( select VARCHAR COMMENT 'x' );`,
		`COPY INTO "t" FROM @"s";`, `CREATE TABLE IF NOT EXISTS "t" ( "a" TEXT COMMENT 'x' );`,
	} {
		text := outline(l.statements(t, sql)[0])
		if slices.ContainsFunc(grammar()["snowflake"], func(p string) bool { return regexp.MustCompile(`^(?:` + p + `)$`).MatchString(text) }) {
			t.Errorf("allowed: %s", sql)
		}
	}
	if _, _, err := l.quoted(`'it\'`); err == nil {
		t.Error("an open literal is taken for a closed one")
	}
}

// TestDialectsHoldReservedWords quotes words that are reserved anywhere.
func TestDialectsHoldReservedWords(t *testing.T) {
	table := ddl.Table{Name: []string{"select", "from"}}
	words, err := os.ReadFile("testdata/reserved.txt")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(words))
	slices.Sort(fields)
	for _, word := range slices.Compact(fields) {
		table.Columns = append(table.Columns, schemas.Column{Name: word, Type: schemas.Type{Kind: schemas.String}, From: schemas.Source{Kind: schemas.FromItem, ID: word}})
	}
	for _, d := range ddl.Dialects() {
		create, err := d.Create(table)
		if err != nil {
			t.Fatal(err)
		}
		load, err := d.Load(table, []ddl.Written{{Path: "gs://b/x.ndjson", Format: "ndjson"}, {Path: "s3://b/x.parquet", Format: "parquet", Known: true, Columns: named("select", "from").Columns, Parts: []ddl.Part{{}}}}, ddl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkGrammar(t, d.Name, create+load)
	}
}
