package main

import (
	"os"
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
// are reserved words.
func TestReservedWordsAreNames(t *testing.T) {
	words := reservedWords(t)
	if len(words) < 500 {
		t.Fatalf("only %d reserved words", len(words))
	}
	columns := make([]schemas.Column, 0, len(words))
	for _, word := range words {
		columns = append(columns, schemas.Column{Name: word, Label: word, Type: schemas.Type{Kind: schemas.String}, From: schemas.Source{Kind: schemas.FromItem, ID: word}})
	}
	for _, own := range []string{"select", "table", "user", "order"} {
		table := ddl.Table{Name: []string{own}, Comment: "SELECT", Columns: columns}
		sameNames(t, table)
		for _, d := range ddl.Dialects() {
			if _, err := d.Create(table); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	}
}
