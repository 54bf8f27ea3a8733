package cells_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/internal/cells"
)

// of is a schema of an id and a list that is shown so.
func of(elem arrow.DataType, as, choices string) *arrow.Schema {
	meta := arrow.NewMetadata([]string{"formetl.list_as", "formetl.choices"}, []string{as, choices})
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "c", Type: arrow.ListOf(elem), Metadata: meta},
	}, nil)
}

func TestOf(t *testing.T) {
	text := arrow.BinaryTypes.String
	for name, c := range map[string]struct {
		schema   *arrow.Schema
		headings string
		fault    string
	}{
		"joined":       {of(text, "joined", ""), "id c", ""},
		"json":         {of(arrow.PrimitiveTypes.Int64, "json", ""), "id c", ""},
		"columns":      {of(text, "columns", `[["red","c__red"],["b|","c__b"]]`), "id c__red c__b", ""},
		"no choice":    {of(text, "columns", `[]`), "id", ""},
		"unknown":      {of(text, "rows", ""), "", `column "c": unknown list_as "rows"`},
		"numbers":      {of(arrow.PrimitiveTypes.Int64, "columns", "[]"), "", "has no choices"},
		"damaged":      {of(text, "columns", `[["red"`), "", "cannot be read"},
		"twice":        {of(text, "columns", `[["red","id"]]`), "", `"id" is used twice`},
		"nothing else": {arrow.NewSchema(of(text, "columns", "[]").Fields()[1:], nil), "", "add a column from result_id"},
	} {
		fields, err := cells.Fields(c.schema)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var headings []string
		for _, f := range fields {
			headings = append(headings, f.Headings...)
		}
		if got := strings.Join(headings, " "); got != c.headings || fields[0].As != "" || fields[1].As == "" {
			t.Errorf("%s: %+v", name, fields)
		}
	}
}
