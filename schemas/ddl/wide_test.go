package ddl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/ddl"
)

// TestWideTables quotes 1,600 columns, labels in ten scripts as they are and in
// snake case, by each dialect's rules.
func TestWideTables(t *testing.T) {
	scripts := []string{"Name?", "Имя \"ваше\"", "Όνομα", "名前", "名字", "이름", "اسم", "שם", "नाम", "ชื่อ's"}
	for _, snake := range []bool{true, false} {
		table := ddl.Table{Name: []string{"wide"}}
		u := &schemas.Uniquer{}
		for i := range 1600 {
			name := scripts[i%10]
			if i%5 == 0 {
				name = "équal `labels`"
			}
			if snake {
				name = schemas.Snake(name)
			}
			table.Columns = append(table.Columns, schemas.Column{
				Name: u.Name(name), Label: scripts[i%10], Type: schemas.Type{Kind: schemas.String}, From: schemas.Source{Kind: schemas.FromItem, ID: fmt.Sprint(i)},
			})
		}
		for _, d := range ddl.Dialects() {
			sql, err := d.Create(table)
			if d.Name == "bigquery" && !snake {
				if err == nil || !strings.Contains(err.Error(), "more") {
					t.Errorf("BigQuery takes names with quotes: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			quoted := checkGrammar(t, d.Name, sql)
			for _, c := range table.Columns {
				if !slices.Contains(quoted, c.Name) {
					t.Errorf("%s: %q is not there", d.Name, c.Name)
				}
			}
		}
	}
}
