package pipelines_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// everyFormat are outputs of all formats, as files and as datasets.
func everyFormat() []definition.Output {
	return []definition.Output{
		{Path: "form1.csv", Format: "csv"},
		{Path: "excel.csv", Format: "csv", Profile: "excel"},
		{Path: "form1.ndjson", Format: "ndjson"},
		{Path: "form1.json", Format: "json"},
		{Path: "form1.parquet", Format: "parquet"},
		{Path: "form1.arrow", Format: "arrow"},
		{Path: "form1.xlsx", Format: "xlsx"},
		{Path: "days/", Format: "csv", Partition: definition.PartitionDay},
		{Path: "months/", Format: "parquet", Partition: definition.PartitionMonth},
		{Path: "years/", Format: "ndjson", Partition: definition.PartitionYear},
		{Path: "plain/", Format: "arrow"},
	}
}

// shapeOf runs a definition by one generation of the service, and returns the files that
// it wrote. Parts are named after their folders, because their names tell of the run.
func shapeOf(t *testing.T, w *world, api definition.API, change func(*definition.Definition)) map[string]string {
	t.Helper()
	own := *w
	own.dir = t.TempDir()
	def := own.definition(everyFormat()...)
	def.Source.API = api
	change(def)
	own.run(def)
	shape := map[string]string{}
	all := tree(t, own.dir)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case strings.HasSuffix(name, "schema.json"):
			shape[name] = described(t, all[name])
		case len(dataOnly(map[string]string{name: ""})) == 0, strings.HasPrefix(name, "state/"), strings.HasSuffix(name, ".codebook.csv"):
		case strings.Contains(name, "/"):
			parts := 0
			for other := range shape {
				if filepath.Dir(other) == filepath.Dir(name) {
					parts++
				}
			}
			shape[fmt.Sprintf("%s/%d", filepath.Dir(name), parts)] = all[name]
		default:
			shape[name] = all[name]
		}
	}
	return shape
}

// described is a codebook without what API v2 does not tell: labels of metas, types of
// items and thereby which of them offer choices, and places of their own for the items
// of a matrix.
func described(t *testing.T, codebook string) string {
	t.Helper()
	var book map[string]any
	if err := json.Unmarshal([]byte(codebook), &book); err != nil {
		t.Fatal(err)
	}
	for _, c := range book["columns"].([]any) {
		column := c.(map[string]any)
		delete(column, "item_type")
		delete(column, "index")
		delete(column, "choices")
		delete(column, "many_choices")
		if strings.HasPrefix(column["from"].(string), "meta:") {
			column["label"] = ""
		}
	}
	text, err := json.MarshalIndent(book, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// everyItem is a form with all that a form may have: matrices of two levels under labels of
// their own, choices that are typed, uploads, results without dates, and results at both
// changes of the clocks. words are those of result_status.
func everyItem(words ...string) *formservice.Form {
	f := formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Name"},
		{ID: "5", Type: "radio", Index: 2, Label: "Size", Choices: []string{"S", "M", "Other"}},
		{ID: "6", Type: "checkbox", Index: 3, Label: "Colours", Choices: []string{"red", "blue"}},
		{ID: "41-1", Type: "matrix", Index: 4, Label: "Soup", Choices: []string{"poor", "good"}},
		{ID: "41-0", Type: "matrix", Index: 5, Label: "Name", Choices: []string{"poor", "good"}},
		{ID: "353-1-0", Type: "text", Index: 6, Label: "Price"},
		{ID: "353-1-1", Type: "checkbox", Index: 7, Label: "", Choices: []string{"a", "b", "c"}},
		{ID: "353-0-1", Type: "text", Index: 8, Label: "Price"},
		{ID: "7", Type: "file", Index: 9, Label: "Photos"},
		{ID: "8", Type: "signature", Index: 10, Label: "Signed"},
		{ID: "9", Type: "text", Index: 11, Label: "Name"},
	}, nil)
	f.Groups = map[string]string{"41": "How was it?", "353": "Shops", "353-0": "First", "353-1": "Second"}
	f.Metas = []string{"result_status", "date_start", "date_finish", "date_update"}
	at := []string{
		"2025-03-08 12:00:00", "2025-03-09 01:59:59", "2025-03-09 02:30:00", "2025-03-09 03:00:00",
		"2025-03-30 01:59:59", "2025-03-30 02:00:00", "2025-03-30 03:00:00",
		"2025-10-26 01:59:59", "2025-10-26 02:00:00", "2025-10-26 02:59:59", "2025-10-26 03:00:00",
		"2025-11-02 00:59:59", "2025-11-02 01:00:00", "2025-11-02 01:59:59", "2025-11-02 02:00:00", "2025-12-31 23:59:59",
	}
	answer := func(id string, values ...string) formservice.Answer {
		return formservice.Answer{ID: id, Values: values}
	}
	for i := range 60 {
		r := formservice.Result{ID: int64(1 + i)}
		meta := func(id, value string) { r.Metas = append(r.Metas, formservice.Meta{ID: id, Value: value}) }
		meta("result_status", words[i%5/4])
		when := at[i%len(at)]
		switch i % 12 {
		case 5: // no date at all
		case 8:
			meta("date_start", when)
			meta("date_finish", "")
		case 9:
			meta("date_update", when)
			meta("date_start", when)
		default:
			meta("date_finish", when)
			meta("date_start", when)
		}
		size := []string{"S", "M", "XXL | wide", "", "Other"}[i%5]
		r.Items = append(r.Items, answer("9", "nine"), answer("5", size))
		if i%3 > 0 {
			r.Items = append(r.Items, answer("1", []string{"", "Ben", "Zoë\nMeier"}[i%3]), answer("41-0", "good"), answer("41-1", "poor"))
		}
		switch i % 4 {
		case 0:
			r.Items = append(r.Items, answer("6", "red", "blue", "a typed \"teal\""), answer("353-1-1", ""), answer("353-0-1", "1", "", "3"))
		case 1:
			r.Items = append(r.Items, answer("6", "teal"), answer("353-1-1", "b", "c"), answer("353-0-1", ""))
		case 2:
			r.Items = append(r.Items, answer("6", ""), answer("353-1-0", "5.00"))
		}
		if i%2 == 0 {
			files := []string{"https://fs1.example.com/acme/files/f-1-2-3_a b.jpg", "https://fs1.example.com/acme/files/f-1-2-4_b,c.jpg", ""}
			r.Items = append(r.Items, answer("7", files[i%3:min(3, i%3+1+i%4/2)]...), answer("8", "https://fs1.example.com/acme/files/sig-1.png"))
		}
		if _, err := f.Insert(r); err != nil {
			panic(err)
		}
	}
	return f
}

// chosen lists every answer among the choices of its item. What is typed beside choices has a
// column of its own by API v2 alone, see TestOtherAnswers.
func chosen(f *formservice.Form) *formservice.Form {
	f.Items = slices.Clone(f.Items) // generated results depend on the choices of the original
	f.Each(func(r formservice.Result) bool {
		for _, a := range r.Items {
			it := &f.Items[slices.IndexFunc(f.Items, func(it formservice.Item) bool { return it.ID == a.ID })]
			for _, v := range a.Values {
				if len(it.Choices) > 0 && v != "" && !slices.Contains(it.Choices, v) {
					it.Choices = append(slices.Clip(it.Choices), v)
				}
			}
		}
		return true
	})
	return f
}

// typed declares some columns of generated forms, with rules of all kinds.
func typed() *schemas.Schema {
	column := func(name, from, kind string) schemas.Column {
		source, err := schemas.ParseSource(from)
		if err != nil {
			panic(err)
		}
		of, err := schemas.ParseType(kind)
		if err != nil {
			panic(err)
		}
		return schemas.Column{Name: name, From: source, Type: of, OnError: schemas.OnErrorSetNull}
	}
	s := &schemas.Schema{Columns: []schemas.Column{
		column("finished", "meta:date_finish", "timestamp"),
		column("state", "meta:result_status", "string"),
		column("colours", "item:75", "list<string>"),
		column("age", "item:112", "int64"),
		column("id", "result_id", "string"),
		column("toppings", "item:445", "list<string>"),
		column("colours_2", "item:593", "list<string>"),
		column("toppings_2", "item:963", "list<string>"),
	}}
	s.Columns[2].Explode = true
	s.Columns[1].PII = schemas.PII{Kind: schemas.PIITruncate, Keep: 3}
	return s
}

// TestOneShape: equal results give equal files by both generations of the service,
// byte by byte, in all formats. described tells what of codebooks differs.
func TestOneShape(t *testing.T) {
	worlds := map[string]func() *formservice.Form{
		"generated": func() *formservice.Form { return generated(400) },
		"survey":    func() *formservice.Form { return everyItem("Complete", "Incomplete") },
		"winter": func() *formservice.Form {
			return formservice.Generate(formservice.GenerateOptions{
				Directory: "form1", Results: 300, Items: 28, Seed: 3, Control: true, Even: true,
				From: time.Date(2025, 10, 25, 0, 0, 0, 0, time.UTC), To: time.Date(2025, 11, 4, 0, 0, 0, 0, time.UTC),
			})
		},
	}
	changes := map[string]func(*definition.Definition){
		"ids":    func(*definition.Definition) {},
		"labels": func(d *definition.Definition) { d.Names = schemas.ByLabel },
		"late":   func(d *definition.Definition) { d.Schema = &schemas.Schema{} },
		"schema": func(d *definition.Definition) { d.Schema = typed() },
		"custom": func(d *definition.Definition) { d.Names, d.Extract.CustomLabels = schemas.ByLabel, "10" },
		"metas":  func(*definition.Definition) {},
		"view":   func(d *definition.Definition) { d.Names, d.Extract.View = schemas.ByLabel, "101" },
	}
	type run struct{ world, zone, kind string }
	// Items without a value differ in columns that are no lists, so that generated forms
	// are not read late.
	runs := []run{
		{"survey", "America/Chicago", "labels"},
		{"winter", "Europe/Berlin", "ids"},
	}
	if needs.Programs() {
		runs = append(runs, run{"generated", "UTC", "schema"}) // it is slow
	}
	if needs.All() {
		for _, kind := range []string{"ids", "labels", "late", "metas"} {
			runs = append(runs, run{"survey", "America/Chicago", kind}, run{"survey", "Europe/Berlin", kind})
		}
		for _, kind := range []string{"ids", "labels", "metas", "schema", "custom", "view"} {
			runs = append(runs, run{"generated", "UTC", kind}, run{"winter", "Europe/Berlin", kind}, run{"winter", "America/Chicago", kind})
		}
	}
	for _, r := range runs {
		t.Run(r.world+"/"+r.zone+"/"+r.kind, func(t *testing.T) {
			zone, err := time.LoadLocation(r.zone)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, chosen(worlds[r.world]()))
			w.service.API, w.service.Zone, w.source.Zone = formservice.Both, zone, zone
			faults := formservice.Faults("headings=items") // API v2 has no labels of metas
			switch r.kind {
			case "labels":
				faults += ",v2-fractions=random,v2-mix-values,v2-number-ids,v2-own-positions"
			case "metas":
				faults = ""
			}
			w.service.SetFaults(faults)
			one, two := shapeOf(t, w, definition.APIv1, changes[r.kind]), shapeOf(t, w, definition.APIv2, changes[r.kind])
			if r.kind == "metas" {
				maps.DeleteFunc(one, labelled)
				maps.DeleteFunc(two, labelled)
			}
			if len(one) < 8 {
				t.Fatalf("only %d outputs", len(one))
			}
			sameTree(t, one, two)
		})
	}
}

// labelled tells whether a file is of a format that carries the labels of columns.
func labelled(name, _ string) bool {
	return strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".arrow") || strings.HasPrefix(name, "months/") || strings.HasPrefix(name, "plain/")
}

// TestWhatDiffers holds the differences of values and columns that api-v2.md lists, and
// that there are no others in their results.
func TestWhatDiffers(t *testing.T) {
	form := formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "radio", Index: 1, Choices: []string{"S", "M"}},
		{ID: "2", Type: "checkbox", Index: 2, Choices: []string{"red", "blue"}},
		{ID: "3", Type: "checkbox", Index: 3, Choices: []string{"a"}},
	}, []formservice.Result{{
		ID: 1,
		Metas: []formservice.Meta{
			{ID: "approved", Value: "yes"}, {ID: "result_status", Value: "Confirmed"}, {ID: "date_start", Value: "2026-01-01 10:00:00"}, {ID: "date_finish"},
		},
		Items: []formservice.Answer{{ID: "1", Values: []string{""}}, {ID: "2", Values: []string{"blue", "red", "my own"}}, {ID: "3"}},
	}})
	form.Metas = []string{"user_ip"}
	w := newWorld(t, form)
	w.service.API, w.service.Zone, w.source.Zone = formservice.Both, time.UTC, time.UTC
	rows := func(api definition.API, schema *schemas.Schema) string {
		return shapeOf(t, w, api, func(d *definition.Definition) { d.Schema = schema })["form1.ndjson"]
	}
	text := func(name string, from schemas.Source) schemas.Column {
		return schemas.Column{Name: name, From: from, Type: schemas.Type{Kind: schemas.String}}
	}
	declared := &schemas.Schema{Unknown: schemas.UnknownIgnore, Columns: []schemas.Column{
		text("finished", schemas.Source{Kind: schemas.FromMeta, ID: "date_finish"}),
		text("started", schemas.Source{Kind: schemas.FromMeta, ID: "date_start"}),
		text("a", schemas.Source{Kind: schemas.FromItem, ID: "3"}),
	}}
	for _, c := range []struct {
		schema *schemas.Schema
		v1, v2 string
	}{
		{
			nil,
			`{"result_id":1,"result_status":"Confirmed","date_start":"2026-01-01T10:00:00Z","date_finish":null,"user_ip":null,"approved":"yes","item_1":"","item_2":["blue","red","my own"],"item_3":null}`,
			`{"result_id":1,"result_status":"Complete","date_start":"2026-01-01T10:00:00Z","item_1":"","item_2":["red","blue","Other"],"item_2_other":"my own","item_3":""}`,
		},
		{
			declared,
			`{"finished":"","started":"2026-01-01 10:00:00","a":null}`,
			`{"finished":null,"started":"2026-01-01 10:00:00","a":""}`,
		},
	} {
		if got := rows(definition.APIv1, c.schema); got != c.v1+"\n" {
			t.Errorf("by v1 %swant  %s", got, c.v1)
		}
		if got := rows(definition.APIv2, c.schema); got != c.v2+"\n" {
			t.Errorf("by v2 %swant  %s", got, c.v2)
		}
	}
}
