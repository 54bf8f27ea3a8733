package pipelines_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas"
)

// shownAs is a dataset of CSV parts whose list is shown so.
func shownAs(w *world, as schemas.ListAs, profile string, explode bool) *definition.Definition {
	return w.coloured(schemas.Column{ListAs: as, Explode: explode}, definition.Output{Path: "days/", Format: "csv", Partition: definition.PartitionDay, Profile: profile})
}

// TestCSVDatasetKeepsItsLayout: its parts are read together, so that a change of
// how lists or texts are shown needs --full.
func TestCSVDatasetKeepsItsLayout(t *testing.T) {
	w := newWorld(t, colourForm())
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
	w.runBy(shownAs(w, schemas.ListColumns, "excel", false), o)
	w.run(shownAs(w, schemas.ListColumns, "excel", false))
}

// TestChildThatNobodyAsksFor is told of once: it holds values still.
func TestChildThatNobodyAsksFor(t *testing.T) {
	w := newWorld(t, colourForm())
	w.run(shownAs(w, "", "strict", true))
	for i, want := range []bool{true, false} {
		report := w.run(shownAs(w, "", "strict", false))
		told := strings.Contains(strings.Join(report.Forms[0].Drift, " "), w.path("days__colours")+"/ stays as it is")
		if told != want {
			t.Errorf("run %d: drift %v", i, report.Forms[0].Drift)
		}
	}
}
