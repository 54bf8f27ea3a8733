package upkeep_test

import (
	"os"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
)

// diffForm has a question that results answer with several values, one whose
// values are numbers but for two, and one that no result has.
func diffForm() *formservice.Form {
	items := []formservice.Item{
		{ID: "2", Type: "text", Index: 1, Label: "Age"},
		{ID: "1", Type: "text", Index: 2, Label: "Full name"},
		{ID: "4", Type: "checkbox", Index: 3, Label: "Tags"},
		{ID: "8", Type: "text", Index: 4, Label: "New"},
	}
	ages := []string{"31", "about 40", "77", "12.5", ""}
	results := make([]formservice.Result, 0, len(ages))
	for i, age := range ages {
		r := pipelinestest.Result(int64(i+1), "2026-01-01 09:00:00", "x")
		r.Items = []formservice.Answer{
			{ID: "1", Values: []string{"x"}},
			{ID: "2", Values: []string{age}},
			{ID: "4", Values: []string{"a", "b"}[:1+i%2]},
			{ID: "12-3", Values: []string{"a cell of a matrix, which no heading lists"}},
		}
		results = append(results, r)
	}
	f := formservice.NewForm("form1", items, results)
	f.Metas = []string{"result_status", "date_finish"}
	return f
}

// known reads a schema file's text.
func known(t *testing.T, w *world, text string) *schemas.Schema {
	t.Helper()
	path := w.path("known.yaml")
	if err := os.WriteFile(path, []byte("version: 1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := definition.LoadSchema(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const metaColumns = `columns:
- {name: id, from: result_id, type: int64}
- {name: state, from: "meta:result_status", type: string}
- {name: finished, from: "meta:date_finish", type: timestamp}
`

func TestDiffLive(t *testing.T) {
	const all = metaColumns + `
- {name: age, from: "item:2", type: string, label: "Age"}
- {name: name, from: "item:1", type: string, label: "Full name"}
- {name: tags, from: "item:4", type: "list<string>", label: "Tags"}
- {name: fresh, from: "item:8", type: string}
- {name: cell, from: "item:12-3", type: string}
`
	for _, c := range []struct{ name, schema, want string }{
		{"as it is", all, ""},
		{"relabelled", `columns: [{name: id, from: result_id, type: int64}, {name: age, from: "item:2", type: int64, on_error: set_null, label: "Years"}, {name: state, from: "meta:result_status", type: string, label: "State"}]
unknown: ignore`, "relabelled item:2 age [Years] [Age]\n" +
			"relabelled meta:result_status state [State] [Result status]\n" +
			"added meta:date_finish date_finish [] [timestamp] Date finish\nadded item:1 item_1 [] [string] Full name\n" +
			"added item:4 item_4 [] [list<string>] Tags\nadded item:8 item_8 [] [string] New\nadded item:12-3 item_12_3 [] [string]\n" +
			"retyped item:2 age values [int64] [not a whole number] x2"},
		{"strict", all + "unknown: fail\n", ""},
		{"strict and more on the form", metaColumns + `
- {name: age, from: "item:2", type: "decimal(5,2)"}
- {name: tags, from: "item:4", type: string}
- {name: name, from: "item:1", type: string}
- {name: fresh, from: "item:8", type: string}
unknown: fail
`, "reordered item:1 name [after tags] [after age]\nreordered item:4 tags [after age] [after name]\nreordered item:8 fresh [after name] [after tags]\n" +
			"added item:12-3 item_12_3 [] [string] breaks\n" +
			"retyped item:2 age values [decimal(5,2)] [not a decimal number] x1 breaks\n" +
			"retyped item:4 tags values [string] [several values] x2 breaks"},
		{"gone", all + `
- {name: fax, from: "item:7", type: string, label: "Fax"}
- {name: never, from: "item:77", type: string}
- {name: mail, from: "meta:login_email", type: string}
`, "removed item:7 fax [string] [] Fax breaks\nremoved item:77 never [string] [] breaks\nremoved meta:login_email mail [string] [] breaks"},
		{"required", metaColumns + `
- {name: age, from: "item:2", type: int64, nullable: false}
- {name: name, from: "item:1", type: string, nullable: false}
- {name: tags, from: "item:4", type: "list<int64>", nullable: false}
- {name: fresh, from: "item:8", type: string, nullable: false, on_error: fail}
- {name: cell, from: "item:12-3", type: string}
`, "retyped item:2 age values [int64] [not a whole number] x2 breaks\nretyped item:2 age values [int64] [missing] x1 breaks\n" +
			"retyped item:4 tags values [list<int64>] [not a whole number] x7 breaks\n" +
			"retyped item:8 fresh values [string] [missing] x5 breaks"},
		{"rules of other kinds", "max_rejects: 3\nempty: as_null\nhmac_key: ${env:NOBODYS_KEY}\n" + metaColumns + `
- {name: age, from: "item:2", type: "decimal(9,2)", decimal_separator: ".", on_error: set_null}
- {name: name, from: "item:1", type: string, nullable: false, pii: hmac}
- {name: tags, from: "item:4", type: "list<string>", list_as: columns, choices: [a, b], explode: true}
- {name: fresh, from: "item:8", type: bool, true_values: [x], false_values: [y]}
- {name: cell, from: "item:12-3", type: string, pii: drop}
`, "retyped item:2 age values [decimal(9,2)] [not a number with the separators of the schema] x1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, diffForm())
			d, err := upkeep.DiffLive(t.Context(), w.definition(), options(), "form1", known(t, w, c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if got := pipelinestest.ChangeLines(d.Changes); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if d.Sampled != 5 || !d.Listed {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestDiffLiveWithoutHeadings: absence in a sample proves nothing.
func TestDiffLiveWithoutHeadings(t *testing.T) {
	for _, results := range []bool{true, false} {
		form := diffForm()
		form.Items, form.Metas = nil, nil
		want := "removed item:7 fax [string] [not in the sample] Fax"
		if !results {
			for _, r := range pipelinestest.Truth(form, nil) {
				form.Delete(r.ID)
			}
			want = ""
		}
		w := newWorld(t, form)
		schema := known(t, w, metaColumns+`
- {name: name, from: "item:1", type: string, label: "Name"}
- {name: fax, from: "item:7", type: string, label: "Fax"}
unknown: ignore
`)
		d, err := upkeep.DiffLive(t.Context(), w.definition(), options(), "form1", schema)
		if err != nil {
			t.Fatal(err)
		}
		var gone []schemas.Change
		for _, c := range d.Changes {
			if c.Kind != schemas.ColumnAdded {
				gone = append(gone, c)
			}
		}
		if got := pipelinestest.ChangeLines(gone); got != want || d.Listed {
			t.Errorf("%v results: got\n%s\nwant\n%s, listed %v", results, got, want, d.Listed)
		}
	}
}
