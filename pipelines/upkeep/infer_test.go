package upkeep_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
)

// orders is a form whose questions change over time: Coupon is of the past,
// and the amounts of the last results have a currency.
func orders(n int, change func(i int, r *formservice.Result)) *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Your e-mail"},
		{ID: "2", Type: "number", Index: 2, Label: "Amount"},
		{ID: "3", Type: "text", Index: 3, Label: "Delivery"},
		{ID: "4", Type: "checkbox", Index: 4, Label: "Extras\r\n(several)"},
	}
	results := make([]formservice.Result, n)
	for i := range results {
		answer := func(id string, values ...string) formservice.Answer {
			return formservice.Answer{ID: id, Values: values}
		}
		results[i] = formservice.Result{
			Metas: []formservice.Meta{{ID: "date_finish", Value: fmt.Sprintf("2026-01-%02d 10:00:00", 1+i%28)}},
			Items: []formservice.Answer{
				answer("1", fmt.Sprintf("person%d@example.com", i)), answer("2", fmt.Sprintf("%d.50", i)),
				answer("3", fmt.Sprintf("12/%d/2026", 1+i%28)), answer("4", []string{"wrap", "card"}[:1+i%2]...),
			},
		}
		if change != nil {
			change(i, &results[i])
		}
	}
	return formservice.NewForm("form1", items, results)
}

func fileOf(t *testing.T, in *upkeep.InferredSchema) string {
	t.Helper()
	data, err := definition.FormatSchema(in.Schema, in.Notes)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// loaded reads a schema file back.
func loaded(t *testing.T, w *world, text string) *schemas.Schema {
	t.Helper()
	path := w.path("loaded.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := definition.LoadSchema(path, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

func TestInferredFile(t *testing.T) {
	w := newWorld(t, orders(20, func(i int, r *formservice.Result) {
		if i == 3 {
			r.Items = r.Items[:2]
		}
	}))
	text := fileOf(t, inferred(t, w, upkeep.InferOptions{Personal: true}))
	want := `# The columns of form form1, from its headings and all 20 results (2 requests).
# Edit names, types and rules as you need them: another inference writes a new file, which keeps none of it.
# "pii?" marks columns that look like personal data: confirm each, and look at the others too.
version: 1
name: form1
unknown: add
max_rejects: 100
empty: keep
columns:
  # the result's id
  - {name: result_id, from: result_id, type: int64}
  # a time by its id, as all 20 values are; a value in all 20 results
  - {name: date_finish, from: "meta:date_finish", type: timestamp}
  # "Your e-mail": text; a value in all 20 results
  # pii? likely an e-mail address, by its label: to protect it add pii: hmac (or drop, redact, truncate(n))
  - {name: your_e_mail, from: "item:1", type: string, label: "Your e-mail"}
  # "Amount": all 20 values are numbers with 2 decimals; a value in all 20 results
  - {name: amount, from: "item:2", type: "decimal(18,2)", label: Amount}
  # "Delivery": all 19 values look like dates: type: date with format: "M/D/YYYY" declares them; no value in 1 of 20 results
  - {name: delivery, from: "item:3", type: string, label: Delivery}
  # "Extras (several)": several values in 9 of 19 results; text; no value in 1 of 20 results
  - {name: extras_several, from: "item:4", type: "list<string>", label: "Extras\r\n(several)"}
`
	want = strings.ReplaceAll(strings.ReplaceAll(want, "label: Amount", `label: "Amount"`), "label: Delivery", `label: "Delivery"`)
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	loaded(t, w, text)
}

// FuzzNotedSchema: whatever a label or a note holds, the file reads as if it
// had no comments, and no note leaves its line.
func FuzzNotedSchema(f *testing.F) {
	for _, s := range append(formservice.Hostile(), "a\nname: x", "\r  - {", "\u0085x: 1", "\u2028", "#", "\xff", "\x00", "---", "...", "%YAML 1.1") {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, label, note string) {
		s := &schemas.Schema{Name: "x", Columns: []schemas.Column{
			{Name: "a", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.String}, Label: label},
			{Name: "b", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		}}
		plain, err := definition.FormatSchema(s, definition.Notes{})
		if err != nil {
			return // a label that YAML cannot hold
		}
		noted, err := definition.FormatSchema(s, definition.Notes{Head: []string{note, label}, Columns: [][]string{{note, label}, {note}}})
		if err != nil {
			t.Fatal(err)
		}
		var without []string
		for line := range strings.Lines(string(noted)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				without = append(without, line)
			}
		}
		if strings.Join(without, "") != string(plain) {
			t.Errorf("with comments\n%q\nwithout\n%q", noted, plain)
		}
		dir := t.TempDir()
		read := func(name string, data []byte) *schemas.Schema {
			if err := os.WriteFile(dir+"/"+name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := definition.LoadSchema(dir+"/"+name, nil)
			if err != nil {
				t.Fatalf("%v in %q", err, data)
			}
			return got
		}
		if a, b := read("plain.yaml", plain), read("noted.yaml", noted); !reflect.DeepEqual(a, b) {
			t.Errorf("%+v is read with comments, %+v without", b, a)
		}
	})
}
