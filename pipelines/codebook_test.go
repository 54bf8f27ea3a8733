package pipelines_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// surveyed is a result with a colour, and a mail address where id is even.
func surveyed(id int64, finished string, colours ...string) formservice.Result {
	r := pipelinestest.Result(id, finished, "text")
	r.Items = append(r.Items, formservice.Answer{ID: "2", Type: "checkbox", Index: 2, Values: colours})
	if id%2 == 0 {
		r.Items = append(r.Items, formservice.Answer{ID: "3", Type: "select", Index: 3, Values: []string{"secret"}})
	}
	return r
}

func someSurvey() *formservice.Form {
	return formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Answer"}, {ID: "2", Type: "checkbox", Index: 2, Label: "Colours"}, {ID: "3", Type: "select", Index: 3, Label: "Mail"},
	}, []formservice.Result{
		surveyed(1, "2026-01-01 09:00:00", "red", "blue"), surveyed(2, "2026-01-02 09:00:00", "red"), surveyed(3, "2026-01-03 09:00:00", "green"),
	})
}

// TestCodebookBesideEveryOutput: each output has one beside it and none in a
// dataset; outputs that differ in format share it.
func TestCodebookBesideEveryOutput(t *testing.T) {
	w := newWorld(t, someSurvey())
	def := w.daily(
		definition.Output{Path: "out/form1.csv", Format: "csv", Profile: "strict"},
		definition.Output{Path: "out/form1.parquet", Format: "parquet"},
		definition.Output{Path: "lake/{form}/", Format: "ndjson", Partition: definition.PartitionDay},
		definition.Output{Path: "other/x.json", Format: "json", NoCodebook: true},
	)
	w.run(def)
	var found []string
	for name := range tree(t, w.dir) {
		if strings.Contains(name, "schema.json") || strings.Contains(name, "codebook") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if want := []string{"lake/form1.codebook.csv", "lake/form1.schema.json", "out/form1.codebook.csv", "out/form1.schema.json"}; !slices.Equal(found, want) {
		t.Fatalf("got %q, want %q", found, want)
	}
	for _, name := range found {
		if info, err := os.Stat(w.path(name)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s has the permissions %v, %v", name, info.Mode(), err)
		}
	}
	if w.read("lake/form1.schema.json") != w.read("out/form1.schema.json") || w.read("lake/form1.codebook.csv") != w.read("out/form1.codebook.csv") {
		t.Error("the codebook depends on the format")
	}
	if line := "item_2,list<string>,item:2,Colours,checkbox,blue (1) | green (1) | red (2),3,0,\r\n"; !strings.Contains(w.read("out/form1.codebook.csv"), line) {
		t.Errorf("no line %q in\n%s", line, w.read("out/form1.codebook.csv"))
	}
}

// TestCleanKnowsCodebooks: what a killed run left where it was writing the
// codebook of a dataset is removed, and codebooks stay.
func TestCleanKnowsCodebooks(t *testing.T) {
	w := newWorld(t, someSurvey())
	def := w.daily(definition.Output{Path: "lake/form1/", Format: "ndjson", Partition: definition.PartitionDay})
	w.run(def)
	before := tree(t, w.dir)
	if err := os.Mkdir(w.path("lake/.formetl"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path("lake/.formetl/put-ABC"), []byte("half a codebook"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		report, err := upkeep.Clean(t.Context(), def, options(), load.CleanOptions{DryRun: dryRun})
		if err != nil || len(report.Outputs) != 1 || len(report.Outputs[0].Removed) != 1 || report.Outputs[0].Path != w.path("lake/form1.schema.json") {
			t.Fatalf("dry run %v: %+v, %v", dryRun, report, err)
		}
	}
	sameTree(t, before, tree(t, w.dir))
	w.checkTidy()
	if report, err := upkeep.Clean(t.Context(), def, options(), load.CleanOptions{}); err != nil || len(report.Outputs) != 0 {
		t.Errorf("where there is nothing: %+v, %v", report, err)
	}
}
