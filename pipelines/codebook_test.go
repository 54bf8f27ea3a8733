package pipelines_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// codebook is what the tests read of <name>.schema.json.
type codebook struct {
	Rows    int64 `json:"rows"`
	Columns []struct {
		Name     string `json:"name"`
		From     string `json:"from"`
		Label    string `json:"label"`
		ItemType string `json:"item_type"`
		Nulls    int64  `json:"nulls"`
		Choices  []struct {
			Value string `json:"value"`
			Count int64  `json:"count"`
		} `json:"choices"`
	} `json:"columns"`
}

func (w *world) codebook(stem string) codebook {
	w.t.Helper()
	var b codebook
	if err := json.Unmarshal([]byte(w.read(stem+".schema.json")), &b); err != nil {
		w.t.Fatal(err)
	}
	return b
}

// colours shows the choices of someSurvey's list: "blue 1, red 2".
func (b codebook) colours() string {
	var list []string
	for _, c := range b.Columns {
		for _, choice := range c.Choices {
			if c.From == "item:2" {
				list = append(list, fmt.Sprint(choice.Value, " ", choice.Count))
			}
		}
	}
	return strings.Join(list, ", ")
}

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

func (w *world) datasetRows(name string) (rows []map[string]any) {
	w.t.Helper()
	for _, p := range readManifest(w.t, filepath.Join(w.path(name), load.ManifestName)).Parts {
		rows = append(rows, readNDJSON(w.t, filepath.Join(w.path(name), filepath.FromSlash(p.Path)))...)
	}
	return rows
}

// TestCodebookOfAnIncrementalRun: choices are those of all runs, counts of the
// last, and of a dataset that is replaced whole nothing is remembered.
func TestCodebookOfAnIncrementalRun(t *testing.T) {
	form := someSurvey()
	w := newWorld(t, form)
	def := w.definition(definition.Output{Path: "lake/form1/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Extract.Incremental, def.Extract.Lookback = true, 1
	run := func(now string, full bool) {
		t.Helper()
		o := options()
		o.Now, o.Full = zoned(t, w, now), full
		w.runBy(def, o)
	}
	expect := func(rows int64, choices string) {
		t.Helper()
		if b := w.codebook("lake/form1"); b.Rows != rows || b.colours() != choices {
			t.Errorf("%d rows with %s; want %d with %s", b.Rows, b.colours(), rows, choices)
		}
	}
	run("2026-01-10 12:00:00", false)
	expect(3, "blue 1, green 1, red 2")
	if _, err := form.Insert(surveyed(0, "2026-01-11 09:00:00", "blue", "violet")); err != nil {
		t.Fatal(err)
	}
	run("2026-01-12 12:00:00", false)
	expect(1, "blue 1, green 0, red 0, violet 1")
	torn := w.read("lake/form1.schema.json")[:60]
	if err := os.WriteFile(w.path("lake/form1.schema.json"), []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	run("2026-01-13 12:00:00", false) // it begins anew
	expect(0, "")
	run("2026-01-14 12:00:00", true)
	expect(4, "blue 2, green 1, red 2, violet 1")
	form.Delete(3)
	run("2026-01-15 12:00:00", true)
	expect(3, "blue 2, red 2, violet 1")
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
		report, err := upkeep.Clean(t.Context(), def, options().Options, load.CleanOptions{DryRun: dryRun})
		if err != nil || len(report.Outputs) != 1 || len(report.Outputs[0].Removed) != 1 || report.Outputs[0].Path != w.path("lake/form1.schema.json") {
			t.Fatalf("dry run %v: %+v, %v", dryRun, report, err)
		}
	}
	sameTree(t, before, tree(t, w.dir))
	w.checkTidy()
	if report, err := upkeep.Clean(t.Context(), def, options().Options, load.CleanOptions{}); err != nil || len(report.Outputs) != 0 {
		t.Errorf("where there is nothing: %+v, %v", report, err)
	}
}
