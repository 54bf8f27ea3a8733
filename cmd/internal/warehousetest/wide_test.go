package warehousetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

// tenScripts are labels in ten scripts.
func tenScripts() []string {
	return []string{
		"What is your name?", "Какой ваш любимый цвет?", "Ποιο είναι το όνομά σας;", "あなたの名前は何ですか", "你叫什么名字",
		"당신의 이름은 무엇입니까", "ما اسمك؟", "מה שמך?", "आपका नाम क्या है", "คุณชื่ออะไร",
	}
}

// wide makes 1,600 columns of 300 questions: labels in ten scripts, 60 of them
// equal, most of them matrices with long labels.
func wide(name func(label string) string) []schemas.Column {
	columns := []schemas.Column{{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}}}
	u := &schemas.Uniquer{}
	u.Name("result_id")
	for question := range 300 {
		label := fmt.Sprintf("%s (%d)", tenScripts()[question%10], question)
		if question%5 == 0 {
			label = "Any \"other\" remarks; what's `more`, \\ please say so in as many words as you like to?"
		}
		for part := 0; len(columns) < 1600 && part < 6; part++ {
			c := schemas.Column{Label: label, Type: schemas.Type{Kind: schemas.String}, From: schemas.Source{Kind: schemas.FromItem, ID: fmt.Sprintf("%d-%d", question, part)}}
			c.Name = u.Name(name(label))
			columns = append(columns, c)
		}
	}
	return columns
}

// raw keeps a label as a name, cut to what PostgreSQL takes. Quotes stay.
func raw(label string) string {
	for len(label) > schemas.MaxName {
		label = label[:strings.LastIndexFunc(label, func(r rune) bool { return r < 0x80 || r >= 0x80 })]
	}
	return label
}

// TestWideTables makes a table of as many columns as PostgreSQL takes.
func TestWideTables(t *testing.T) {
	for kind, name := range map[string]func(string) string{"snake": schemas.Snake, "labels": raw} {
		t.Run(kind, func(t *testing.T) {
			table := ddl.Table{Name: []string{"wide"}, Comment: "wide", Columns: wide(name)}
			seen := map[string]bool{}
			for _, c := range table.Columns {
				if len(c.Name) > schemas.MaxName || seen[strings.ToLower(c.Name)] {
					t.Fatalf("the name %q is too long, or not new", c.Name)
				}
				seen[strings.ToLower(c.Name)] = true
			}
			if len(table.Columns) != 1600 {
				t.Fatalf("%d columns", len(table.Columns))
			}
			sameNames(t, table)
		})
	}
}

// TestOneColumnTooMany holds PostgreSQL's limit to what PostgreSQL says.
func TestOneColumnTooMany(t *testing.T) {
	table := ddl.Table{Name: []string{"wide"}, Columns: wide(schemas.Snake)}
	table.Columns = append(table.Columns, schemas.Column{Name: "one_more", Type: schemas.Type{Kind: schemas.Bool}})
	_, err := ddl.Named("postgres").Create(table)
	var unfit *ddl.UnfitError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "1601 columns") {
		t.Errorf("1,601 columns: %v", err)
	}
	sql, err := ddl.Named("duckdb").Create(table)
	if err != nil {
		t.Fatal(err)
	}
	duckRun(t, duck(t), sql)
	columns := strings.Repeat("c%d int, ", 1601)
	numbers := make([]any, 0, 1601)
	for i := range 1601 {
		numbers = append(numbers, i)
	}
	if _, err := tryPsql(t, database(t), "CREATE TABLE t ("+strings.TrimSuffix(fmt.Sprintf(columns, numbers...), ", ")+");"); err == nil {
		t.Error("PostgreSQL takes 1,601 columns by now: raise the limit")
	}
}

// sameNames makes the table in both engines and compares its columns' names and
// comments with those asked for.
func sameNames(t *testing.T, table ddl.Table) {
	t.Helper()
	want := make([]string, 0, len(table.Columns))
	for _, c := range table.Columns {
		want = append(want, c.Name)
	}
	db, name := duck(t), database(t)
	for dialect, names := range map[string]func(sql string) string{
		"duckdb": func(sql string) string {
			duckRun(t, db, "BEGIN; "+sql+"COMMIT;")
			return duckLines(t, db, "SELECT to_json(list(column_name ORDER BY column_index))::VARCHAR FROM duckdb_columns() WHERE comment IS NOT NULL AND NOT internal")
		},
		"postgres": func(sql string) string {
			psql(t, name, sql)
			return psql(t, name, "SELECT json_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid = '"+quote(table.Name[0])+"'::regclass AND attnum > 0 AND col_description(attrelid, attnum) IS NOT NULL")
		},
	} {
		sql, err := ddl.Named(dialect).Create(table)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal([]byte(names(sql)), &got); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%s: the table's columns are\n%q, want\n%q", dialect, got, want)
		}
	}
}
