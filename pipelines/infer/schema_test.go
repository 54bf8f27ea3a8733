package infer_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
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

func fileOf(t *testing.T, in *infer.InferredSchema) string {
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
	text := fileOf(t, inferred(t, w, infer.Options{Personal: true}))
	want := `# The columns of form form1, from its headings and all 20 results (2 requests).
# Edit names, types and rules: another inference keeps what is declared here, but not comments.
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

// TestReinferred: what is declared stays, labels follow the form, new fields
// come at the end, comments tell what does not fit, and a second time changes
// nothing.
func TestReinferred(t *testing.T) {
	w := newWorld(t, orders(20, func(i int, r *formservice.Result) {
		if i >= 18 {
			r.Items[1].Values = []string{"12 EUR"}
			r.Items = append(r.Items, formservice.Answer{ID: "9", Type: "text", Index: 1, Values: []string{"new"}})
		}
	}))
	base := loaded(t, w, `version: 1
name: orders
unknown: fail
max_rejects: 7
empty: as_null
hmac_key: ${env:ORDERS_KEY}
columns:
  - {name: extras, from: "item:4", type: "list<string>", list_as: columns, choices: [wrap, card]}
  - {name: item_9, from: "item:77", type: bool, true_values: [ja], false_values: [nein], label: "Coupon"}
  - {name: total, from: "item:2", type: "decimal(12,2)", on_error: set_null, label: "Sum"}
  - {name: due, from: "item:3", type: date, format: [MM/DD/YYYY, M/D/YYYY], nullable: false}
  - {name: mail, from: "item:1", type: string, pii: hmac}
  - {name: number, from: result_id, type: string}
`)
	got := inferred(t, w, infer.Options{Base: base, Personal: true})
	if got.Added != 2 || got.Gone != 1 || got.Misfits != 1 {
		t.Errorf("%d added, %d gone, %d misfits", got.Added, got.Gone, got.Misfits)
	}
	text := fileOf(t, got)
	want := `columns:
  # "Extras (several)": several values in 10 of 20 results; text; a value in all 20 results
  - {name: extras, from: "item:4", type: "list<string>", list_as: columns, choices: [wrap, card], label: "Extras\r\n(several)"}
  # "Coupon": no longer on the form: neither its headings nor the sampled results have it
  - {name: item_9, from: "item:77", type: bool, true_values: [ja], false_values: [nein], label: "Coupon"}
  # "Amount": declared as decimal(12,2), but 2 values do not fit (not a decimal number); the sample suggests string: 18 of 20 values are numbers, the others are not; a value in all 20 results
  - {name: total, from: "item:2", type: "decimal(12,2)", on_error: set_null, label: "Amount"}
  # "Delivery": declared as date, which every value fits; a value in all 20 results
  - {name: due, from: "item:3", type: date, format: ["MM/DD/YYYY", "M/D/YYYY"], nullable: false, label: "Delivery"}
  # "Your e-mail": text; a value in all 20 results
  - {name: mail, from: "item:1", type: string, pii: hmac, label: "Your e-mail"}
  # the result's id
  - {name: number, from: result_id, type: string}
  # a time by its id, as all 20 values are; a value in all 20 results
  - {name: date_finish, from: "meta:date_finish", type: timestamp}
  # 2 values are too few to tell a type by, which takes 5; no value in 18 of 20 results
  - {name: item_9_2, from: "item:9", type: string}
`
	if _, columns, _ := strings.Cut(text, "hmac_key: \"${env:ORDERS_KEY}\"\n"); columns != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	again := fileOf(t, inferred(t, w, infer.Options{Base: loaded(t, w, text), Personal: true}))
	if again != text {
		t.Errorf("a second inference gives\n%s\nafter\n%s", again, text)
	}
}

// TestReinferredMisses: a column that must have a value and does not.
func TestReinferredMisses(t *testing.T) {
	w := newWorld(t, orders(10, func(i int, r *formservice.Result) {
		if i < 3 {
			r.Items = r.Items[:1]
		}
	}))
	base := loaded(t, w, "version: 1\ncolumns:\n  - {name: a, from: \"item:2\", type: string, nullable: false}\n  - {name: b, from: \"item:4\", type: string}\n")
	text := fileOf(t, inferred(t, w, infer.Options{Base: base}))
	for _, want := range []string{"but nullable: false, and 3 results have no value; the sample suggests decimal(18,2)", "values do not fit (several values); the sample suggests list<string>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestReinferredZeros: a number that is declared takes zeros in front off, and
// the comment says so.
func TestReinferredZeros(t *testing.T) {
	w := newWorld(t, orders(10, func(i int, r *formservice.Result) {
		r.Items[1].Values = []string{fmt.Sprintf("%03d", 98+i)}
		r.Items[3].Values = []string{"1", "02"}
	}))
	base := loaded(t, w, "version: 1\ncolumns:\n  - {name: a, from: \"item:2\", type: int64}\n  - {name: b, from: \"item:4\", type: \"list<decimal(5,2)>\"}\n")
	text := fileOf(t, inferred(t, w, infer.Options{Base: base}))
	for _, want := range []string{
		"declared as int64, which every value fits, but 2 values have zeros in front, which a number loses; a value in",
		"declared as list<decimal(5,2)>, which every value fits, but 10 values have zeros in front",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestInferThenRun is the round trip: a schema that was inferred from a sample
// of a form with many types of items takes all of the form's results, and no
// value is lost, by a run of the file as it was written.
func TestInferThenRun(t *testing.T) {
	for name, form := range map[string]*formservice.Form{
		"generated": formservice.Generate(formservice.GenerateOptions{Results: 3000, Items: 56}),
		"wide":      wide(120),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, form)
			in := inferred(t, w, infer.Options{Sample: 500, Personal: true})
			text := fileOf(t, in)
			def := w.definition(definition.Output{Path: "out.ndjson", Format: "ndjson"})
			def.Schema = loaded(t, w, text)
			report, err := pipelines.Run(t.Context(), def, pipelines.Options{Options: options()})
			if err != nil {
				t.Fatal(err)
			}
			got := report.Forms[0]
			if got.Rows != int64(form.Len()) || got.Rejected != 0 || len(got.Nulled) != 0 {
				t.Errorf("%d rows of %d, %d rejected %v, null %v", got.Rows, form.Len(), got.Rejected, got.Rejects, got.Nulled)
			}
			kinds := map[string]int{}
			for _, c := range in.Schema.Columns {
				kinds[c.Type.String()]++
			}
			for _, kind := range []string{"string", "int64", "decimal(18,2)", "date", "list<string>"} {
				if kinds[kind] == 0 {
					t.Errorf("no column is %s: %v", kind, kinds)
				}
			}
			again := inferred(t, w, infer.Options{Sample: 500, Personal: true, Base: loaded(t, w, text)})
			if got := fileOf(t, again); cutHead(got) != cutHead(text) || again.Misfits+again.Added+again.Gone != 0 {
				t.Errorf("a second inference changes the file (%d misfits, %d new, %d gone)", again.Misfits, again.Added, again.Gone)
			}
		})
	}
}

// cutHead is a file without the comments above its keys.
func cutHead(text string) string {
	_, keys, _ := strings.Cut(text, "\nversion: 1\n")
	return keys
}

// wide is a form of 1,000 items. Sixty have one label; those after them are in other
// scripts, differ in case or in signs alone, are words of SQL, empty, or too long for a name.
func wide(results int) *formservice.Form {
	form := formservice.Generate(formservice.GenerateOptions{Results: results, Items: 1000})
	labels := []string{
		"", " ", "\n", "1st", "a\"b", "a'b", "a`b", "$x", "drop table x; --", "Größe", "Grösse", "groesse", "GROSSE", "item_1", "x\u202ey",
		"select", "Order", "GROUP", "result_id", "timestamp", "Price", "price", strings.Repeat("Qualität der Räume ", 8),
		"Как вы нас нашли?", "Πώς μας βρήκατε;", "كيف وجدتنا؟", "איך מצאת אותנו?", "आपने हमें कैसे पाया?", "你是怎么找到我们的？",
		"どうやって見つけましたか", "어떻게 찾으셨나요?", "คุณพบเราได้อย่างไร", "Ինչպե՞ս գտաք մեզ", "როგორ გვიპოვეთ?",
	}
	for i := range form.Items {
		form.Items[i].Label = "Comment"
		if i >= 60 {
			form.Items[i].Label = labels[i%len(labels)]
		}
	}
	return form
}

// TestNamesOfWideForm: a thousand columns with labels that are hard to name have unique
// names that fit every database and stay.
func TestNamesOfWideForm(t *testing.T) {
	form := wide(30)
	w := newWorld(t, form)
	in := inferred(t, w, infer.Options{})
	if len(in.Schema.Columns) != len(form.Items)+len(form.Metas)+1 {
		t.Fatalf("%d columns", len(in.Schema.Columns))
	}
	names := map[string]string{}
	for _, c := range in.Schema.Columns {
		if len(c.Name) > schemas.MaxName || c.Name == "" {
			t.Errorf("the name %q of %s", c.Name, c.From)
		}
		if other, taken := names[strings.ToLower(c.Name)]; taken {
			t.Errorf("%s and %s are both %s", other, c.From, c.Name)
		}
		names[strings.ToLower(c.Name)] = c.From.String()
	}
	// The form moves a question to the front, renames another and adds one.
	before := loaded(t, w, fileOf(t, in))
	items := slices.Clone(form.Items)
	items[70].Label = "Comment"
	moved := append([]formservice.Item{items[900]}, slices.Delete(items, 900, 901)...)
	moved = append([]formservice.Item{{ID: "99999", Type: "text", Label: "Comment"}}, moved...)
	for i := range moved {
		moved[i].Index = i + 1
	}
	w2 := newWorld(t, formservice.NewForm("form1", moved, nil))
	after := inferred(t, w2, infer.Options{Base: before})
	for i, c := range before.Columns {
		if got := after.Schema.Columns[i]; got.Name != c.Name || got.From != c.From || !got.Type.Equal(c.Type) {
			t.Fatalf("column %d was %+v and is %+v", i, c, got)
		}
	}
	if last := after.Schema.Columns[len(before.Columns):]; len(last) != 1 || last[0].Name != "comment_62" && last[0].Name != "comment_61" {
		t.Errorf("new columns %+v", last)
	}
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
