package pipelines_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// chosen is a form of one list.
func chosen() *formservice.Form {
	items := []formservice.Item{{ID: "1", Type: "checkbox", Index: 1, Label: "Colours"}}
	one, two := pipelinestest.Result(1, "2026-01-01 09:00:00", ""), pipelinestest.Result(2, "2026-01-02 09:00:00", "")
	one.Items = []formservice.Answer{{ID: "1", Type: "checkbox", Index: 1, Values: []string{"red", "blue"}}}
	two.Items = []formservice.Answer{{ID: "1", Type: "checkbox", Index: 1, Values: []string{"red"}}}
	return formservice.NewForm("form1", items, []formservice.Result{one, two})
}

// shownAs is a dataset of CSV parts whose list is shown so.
func shownAs(w *world, as schemas.ListAs, profile string, explode bool) *definition.Definition {
	def := w.definition(definition.Output{Path: "days/", Format: "csv", Partition: definition.PartitionDay, Profile: profile})
	def.Schema = &schemas.Schema{Name: "n", Unknown: schemas.UnknownIgnore, Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{
			Name: "colours", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.ListOf(schemas.Type{Kind: schemas.String}),
			ListAs: as, Explode: explode,
		},
	}}
	if err := def.Explode(); err != nil {
		w.t.Fatal(err)
	}
	return def
}

// TestCSVDatasetKeepsItsLayout: its parts are read together, so that a change of
// how lists or texts are shown needs --full.
func TestCSVDatasetKeepsItsLayout(t *testing.T) {
	w := newWorld(t, chosen())
	w.run(shownAs(w, "", "strict", false))
	w.run(shownAs(w, schemas.ListJoined, "", false)) // the same, by other words
	before := dataOnly(tree(t, w.dir))
	for name, def := range map[string]*definition.Definition{
		"columns": shownAs(w, schemas.ListColumns, "strict", false), "json": shownAs(w, schemas.ListJSON, "strict", false),
		"excel": shownAs(w, "", "excel", false),
	} {
		_, err := pipelines.Run(t.Context(), def, options())
		var schema *output.SchemaChangedError
		var dataset *output.DatasetChangedError
		if !errors.As(err, &schema) && !errors.As(err, &dataset) {
			t.Errorf("%s: %v", name, err)
		}
		sameTree(t, before, dataOnly(tree(t, w.dir)))
	}
	o := options()
	o.Full = true
	if _, err := pipelines.Run(t.Context(), shownAs(w, schemas.ListColumns, "excel", false), o); err != nil {
		t.Fatal(err)
	}
	w.run(shownAs(w, schemas.ListColumns, "excel", false))
}

// TestChildThatNobodyAsksFor is told of once: it holds values still.
func TestChildThatNobodyAsksFor(t *testing.T) {
	w := newWorld(t, chosen())
	w.run(shownAs(w, "", "strict", true))
	for i, want := range []bool{true, false} {
		report := w.run(shownAs(w, "", "strict", false))
		told := strings.Contains(strings.Join(report.Forms[0].Drift, " "), w.path("days__colours")+"/ stays as it is")
		if told != want {
			t.Errorf("run %d: drift %v", i, report.Forms[0].Drift)
		}
	}
}
