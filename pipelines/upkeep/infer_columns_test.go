package upkeep_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// growing is a form of n results; the last of them answers a question that
// was added later, with several values.
func growing(n int) *formservice.Form {
	items := []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}}
	results := make([]formservice.Result, n)
	for i := range results {
		results[i] = formservice.Result{
			Metas: []formservice.Meta{{ID: "date_finish", Value: fmt.Sprintf("2025-%02d-01 00:00:00", 1+i*12/n)}},
			Items: []formservice.Answer{{ID: "1", Values: []string{"x"}}},
		}
	}
	results[n-1].Items = append(results[n-1].Items, formservice.Answer{ID: "99", Type: "checkbox", Index: 2, Values: []string{"a", "b"}})
	return formservice.NewForm("form1", items, results)
}

func namesAndTypes(c *upkeep.FormColumns) []string {
	list := make([]string, len(c.Schema.Columns))
	for i, x := range c.Schema.Columns {
		list[i] = x.Name + " " + x.Type.String()
	}
	return list
}

func TestInferColumns(t *testing.T) {
	for _, c := range []struct {
		results, sampled, asked int
	}{{5, 5, 2}, {1400, 500, 6}} {
		t.Run(fmt.Sprint(c.results), func(t *testing.T) {
			w := newWorld(t, growing(c.results))
			def := w.definition()
			def.Names = schemas.ByLabel
			got, err := upkeep.InferColumns(t.Context(), def, options(), "form1")
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"result_id int64", "date_finish timestamp", "name string", "item_99 list<string>"}
			if names := namesAndTypes(got); !slices.Equal(names, want) || got.Origin != upkeep.OriginSample || got.Sampled != c.sampled {
				t.Errorf("columns %q from %d results, want %q from %d", names, got.Sampled, want, c.sampled)
			}
			if n := len(w.service.Log()); n > c.asked {
				t.Errorf("%d requests, want at most %d", n, c.asked)
			}
			file, err := definition.FormatSchema(got.Schema, definition.Notes{})
			if err != nil {
				t.Fatal(err)
			}
			path := w.path("schema.yaml")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			if again, err := definition.LoadSchema(path, nil); err != nil || len(again.Columns) != len(want) {
				t.Errorf("read back: %v, %v", again, err)
			}
		})
	}
}

// TestInferEmpty holds that a form without results gives the columns of its
// headings.
func TestInferEmpty(t *testing.T) {
	form := formservice.NewForm("form1", []formservice.Item{{ID: "7", Type: "text", Index: 1, Label: "Age"}}, nil)
	form.Metas = []string{"date_start"}
	w := newWorld(t, form)
	got, err := upkeep.InferColumns(t.Context(), w.definition(), options(), "form1")
	if err != nil {
		t.Fatal(err)
	}
	if names := namesAndTypes(got); !slices.Equal(names, []string{"result_id int64", "date_start timestamp", "item_7 string"}) || got.Sampled != 0 {
		t.Errorf("columns %q from %d results", names, got.Sampled)
	}
	def := w.definition()
	def.Extract.From, def.Extract.To = extracttest.Wall("2025-02-01"), extracttest.Wall("2025-02-01")
	if _, err := upkeep.InferColumns(t.Context(), def, options(), "form1"); err == nil {
		t.Error("an empty range was sampled")
	}
	if _, err := upkeep.InferColumns(t.Context(), w.definition(), options(), "gone"); err == nil {
		t.Error("a form that is not there was sampled")
	}
}

func TestKnownColumns(t *testing.T) {
	w := newWorld(t, growing(5))
	def := w.definition(definition.Output{Path: "out.csv", Format: "csv", Profile: "strict"}, definition.Output{Path: "lake/", Format: "parquet"})
	known := func() *upkeep.FormColumns {
		t.Helper()
		w.service.Reset()
		got, err := upkeep.KnownColumns(t.Context(), def, options(), "form1")
		if err != nil || len(w.service.Log()) != 0 {
			t.Fatalf("%v, %v", err, w.service.Log())
		}
		return got
	}
	if got := known(); got != nil {
		t.Errorf("nothing is known yet: %+v", got)
	}
	if _, err := pipelines.Run(t.Context(), def, options()); err != nil {
		t.Fatal(err)
	}
	all := []string{"result_id int64", "date_finish timestamp", "item_1 string", "item_99 list<string>"}
	if got := known(); got == nil || got.Origin != upkeep.OriginManifest || !slices.Equal(namesAndTypes(got), all) {
		t.Errorf("from the manifest: %+v", got)
	}
	def.Outputs = def.Outputs[:1] // the file's manifest tells as well
	if got := known(); got == nil || got.Origin != upkeep.OriginManifest || !slices.Equal(namesAndTypes(got), all) {
		t.Errorf("from the file's manifest: %+v", got)
	}
	def.Schema = &schemas.Schema{Unknown: schemas.UnknownIgnore, Columns: []schemas.Column{{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: transform.DefaultType(schemas.Source{Kind: schemas.FromResultID})}}}
	if got := known(); got == nil || got.Origin != upkeep.OriginSchema || !slices.Equal(namesAndTypes(got), []string{"id int64"}) {
		t.Errorf("from the schema: %+v", got)
	}
	def.Outputs = w.definition(definition.Output{Path: "lake/", Format: "parquet"}).Outputs
	if got := known(); len(got.Edits) != len(all) { // a run refuses the other name, and to lose the columns that the schema lacks
		t.Errorf("edits %+v", got.Edits)
	}
	def.Schema.Unknown = ""
	if got := known(); len(got.Schema.Columns) != len(all) || len(got.Edits) != 1 { // a run adds what the schema lacks, and refuses the other name
		t.Errorf("from the schema and the manifest: %q", namesAndTypes(got))
	}
}
