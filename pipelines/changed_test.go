package pipelines_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// TestDatasetOfOtherResultsIsRefused: a run that reads other results than the
// dataset holds, or sets their times otherwise, changes nothing; --full
// replaces everything.
func TestDatasetOfOtherResultsIsRefused(t *testing.T) {
	form := fourDays()
	days := definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay}
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*definition.Definition){
		"search": func(d *definition.Definition) {
			d.Extract.Search.Where = []extract.Criterion{{Column: "result_status", Operator: extract.OpEquals, Term: "Incomplete"}}
		},
		"timezone": func(d *definition.Definition) { d.Source.Zone = zurich },
		"view":     func(d *definition.Definition) { d.Extract.View = "11" },
		"format":   func(d *definition.Definition) { d.Outputs[0].Format = "csv" },
		"partition": func(d *definition.Definition) {
			d.Outputs[0].Partition = definition.PartitionMonth
		},
		"naming": func(d *definition.Definition) { d.Labels = true },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, form)
			w.run(w.daily(days))
			manifest := filepath.Join(w.path("days"), load.ManifestName)
			before, err := os.ReadFile(manifest)
			if err != nil {
				t.Fatal(err)
			}
			w.service.Reset()
			def := w.daily(days)
			change(def)
			_, err = pipelines.Run(t.Context(), def, options())
			var changed *output.DatasetChangedError
			if !errors.As(err, &changed) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "--full") {
				t.Errorf("error %v", err)
			}
			if after, _ := os.ReadFile(manifest); string(after) != string(before) {
				t.Error("the refused run changed the dataset")
			}
			w.checkTidy()
			o := options()
			o.Full = true
			if _, err := pipelines.Run(t.Context(), def, o); err != nil {
				t.Errorf("with --full: %v", err)
			}
		})
	}
}

// TestSearchesAreEqualInAnyOrder of their criteria.
func TestSearchesAreEqualInAnyOrder(t *testing.T) {
	a := extract.Criterion{Column: "1", Operator: extract.OpContains, Term: `x "y"`}
	b := extract.Criterion{Column: "12", Operator: extract.OpNotEmpty}
	one, two := extract.Search{Where: []extract.Criterion{a, b}}, extract.Search{Where: []extract.Criterion{b, a}}
	if one.String() != two.String() || one.String() != `1 contains "x \"y\"" and 12 not_empty` {
		t.Errorf("%s, %s", one, two)
	}
	two.Any = true
	if one.String() == two.String() || (extract.Search{}).String() != "" {
		t.Errorf("%s, %s", one, two)
	}
}
