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
	snow := `(?:VARCHAR|BIGINT|DOUBLE|BOOLEAN|DATE|TIMESTAMP_LTZ \( N \)|NUMBER \( N , N \)|ARRAY)`
	big := `(?:STRING|INT64|FLOAT64|BOOL|DATE|TIMESTAMP|(?:BIG)?NUMERIC \( N , N \))`
	big = `(?:` + big + `|ARRAY < ` + big + ` >)`
	red := `(?:VARCHAR \( N \)|BIGINT|DOUBLE PRECISION|BOOLEAN|DATE|TIMESTAMPTZ|DECIMAL \( N , N \)|SUPER)`
	create := func(column, end string) string {
		return `CREATE TABLE IF NOT EXISTS T \( ` + column + `(?: , ` + column + `)* \)` + end
	}
	return map[string][]string{
		"snowflake": {create(`T `+snow+`(?: NOT NULL)? COMMENT S`, `(?: COMMENT = S)?`)},
		"bigquery":  {create(`T `+big+`(?: NOT NULL)? OPTIONS \( description = S \)`, `(?: OPTIONS \( description = S \))?`)},
		"redshift":  {create(`T `+red+`(?: NOT NULL)?`, ``), `COMMENT ON (?:TABLE|COLUMN) T IS S`},
	}
}

// checkGrammar reads a script by the dialect's rules. It gives the names that
// the script quotes.
func checkGrammar(t *testing.T, dialect, sql string) (quoted []string) {
	t.Helper()
	patterns := grammar()[dialect]
	for _, statement := range lexers()[dialect].statements(t, sql) {
		for _, tok := range statement {
			if tok.kind == 'i' {
				quoted = append(quoted, tok.text)
			}
		}
		text := outline(statement)
		if patterns != nil && !slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(`^(?:` + p + `)$`).MatchString(text) }) {
			t.Errorf("%s: no rule of its manual allows\n%s", dialect, text)
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
			known := table.Name
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
		`CREATE TABLE IF NOT EXISTS "t" ( "a" TEXT COMMENT 'x' );`,
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
		checkGrammar(t, d.Name, create)
	}
}
