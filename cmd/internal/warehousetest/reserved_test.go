package warehousetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

// reservedWords are the reserved words of all dialects: those that the two
// engines list themselves, and those that the others document.
func reservedWords(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../../schemas/ddl/testdata/reserved.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(strings.ToLower(string(data)))
	words = append(words, strings.Fields(duckLines(t, duck(t), "SELECT keyword_name FROM duckdb_keywords()"))...)
	words = append(words, strings.Fields(psql(t, database(t), "SELECT word FROM pg_get_keywords()"))...)
	// A system column of Redshift's, which refuses it whatever the quotes.
	words = slices.DeleteFunc(words, func(w string) bool { return w == "oid" })
	slices.Sort(words)
	return slices.Compact(words)
}

// TestReservedWordsAreNames makes tables whose columns, and whose own names,
// are reserved words, and loads them.
func TestReservedWordsAreNames(t *testing.T) {
	words := reservedWords(t)
	if len(words) < 500 {
		t.Fatalf("only %d reserved words", len(words))
	}
	columns, want := make([]schemas.Column, 0, 1+len(words)), make([]string, 0, 1+len(words))
	columns = append(columns, schemas.Column{Name: "the id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}})
	result := map[string]any{"the id": 1}
	want = append(want, "1")
	for _, word := range words {
		columns = append(columns, schemas.Column{Name: word, Label: word, Type: schemas.Type{Kind: schemas.String}, From: schemas.Source{Kind: schemas.FromItem, ID: word}})
		result[word] = word[:1] // a row of PostgreSQL holds 8 KB
		want = append(want, word[:1])
	}
	line, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "words.ndjson")
	if err := os.WriteFile(file, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	db, name := duck(t), database(t)
	for _, own := range []string{"select", "table", "user", "order"} {
		table := ddl.Table{Name: []string{own}, Comment: "SELECT", Columns: columns}
		for _, d := range ddl.Dialects() {
			create, err := d.Create(table)
			if err != nil {
				t.Errorf("%s: %v", d.Name, err)
				continue
			}
			load, err := d.Load(table, []ddl.Written{{Path: file, Format: "ndjson"}}, ddl.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var lines string
			switch d.Name {
			case "duckdb":
				duckRun(t, db, create+load+load)
				lines = duckLines(t, db, cellsOf(columns, quote(own), "the id", false))
			case "postgres":
				psql(t, name, create+load+load)
				lines = psql(t, name, cellsOf(columns, quote(own), "the id", true))
			default:
				continue
			}
			rows := decode(t, columns, lines)
			if len(rows) != 1 {
				t.Fatalf("%s: %d rows", d.Name, len(rows))
			}
			for i := range want {
				if rows[0][i] != want[i] {
					t.Errorf("%s: column %q holds %q", d.Name, columns[i].Name, rows[0][i])
				}
			}
		}
	}
}
