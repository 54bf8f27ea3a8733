package pipelines_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// TestIsDefinition tells definitions and schema files apart by their keys.
func TestIsDefinition(t *testing.T) {
	for text, want := range map[string]bool{
		"version: 1\nname: x\nsource: {}\nforms: [a]\n":     true,
		"version: 1\ncolumns: []\nload: []\n":               true,
		"version: 1\ncolumns: []\n":                         false,
		"version: 1\nunknown: fail\nname: source\n":         false,
		"version: 1\n# source: is a comment\ncolumns: []\n": false,
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := definition.Is(file); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := definition.Is(filepath.Join(t.TempDir(), "missing.yaml")); err == nil {
		t.Error("a file that is not there is something")
	}
}

// TestLookAtOutputs reads manifests before and after a run, and none where each
// run has a place of its own.
func TestLookAtOutputs(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.definition(
		definition.Output{Path: "f.ndjson", Format: "ndjson"}, definition.Output{Path: "{form}/", Format: "parquet", Partition: definition.PartitionDay},
		definition.Output{Path: "{run_id}.csv", Format: "csv"})
	for _, ran := range []bool{false, true} {
		left, err := pipelines.LookAtOutputs(t.Context(), def, options(), "form1")
		if err != nil || len(left) != 3 {
			t.Fatalf("%d outputs, %v", len(left), err)
		}
		for i, path := range []string{w.path("f.ndjson"), w.path("form1") + "/", w.path("{run_id}.csv")} {
			l := left[i]
			if l.Path != path || l.List != "" || l.At("s3://b/x") != "s3://b/x" || (l.Manifest != nil) != (ran && i < 2) {
				t.Errorf("output %d after a run %v: %+v", i, ran, l)
			}
		}
		columns, err := pipelines.LaterColumns(def, []schemas.Column{{Name: "own", From: schemas.Source{Kind: schemas.FromResultID}}}, left)
		if want := map[bool]int{false: 1, true: 4}[ran]; err != nil || len(columns) != want || columns[0].Name != "own" {
			t.Errorf("columns %v, %v, want %d", columns, err, want)
		}
		if !ran {
			w.run(def)
		}
	}
}
