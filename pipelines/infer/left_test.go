package infer_test

import (
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// TestLookAtOutputs reads manifests before and after a run, and none where each
// run has a place of its own.
func TestLookAtOutputs(t *testing.T) {
	w := newWorld(t, formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, []formservice.Result{
		pipelinestest.Result(1, "2026-01-01 09:00:00", "a"), pipelinestest.Result(2, "2026-01-02 09:00:00", "b"),
	}))
	def := w.definition(
		definition.Output{Path: "f.ndjson", Format: "ndjson"}, definition.Output{Path: "{form}/", Format: "parquet", Partition: definition.PartitionDay},
		definition.Output{Path: "{run_id}.csv", Format: "csv"})
	for _, ran := range []bool{false, true} {
		left, err := infer.LookAtOutputs(t.Context(), def, options(), "form1")
		if err != nil || len(left) != 3 {
			t.Fatalf("%d outputs, %v", len(left), err)
		}
		for i, path := range []string{w.path("f.ndjson"), w.path("form1") + "/", w.path("{run_id}.csv")} {
			l := left[i]
			if l.Path != path || l.List != "" || l.At("s3://b/x") != "s3://b/x" || (l.Manifest != nil) != (ran && i < 2) {
				t.Errorf("output %d after a run %v: %+v", i, ran, l)
			}
		}
		columns, err := infer.LaterColumns(def, []schemas.Column{{Name: "own", From: schemas.Source{Kind: schemas.FromResultID}}}, left)
		if want := map[bool]int{false: 1, true: 4}[ran]; err != nil || len(columns) != want || columns[0].Name != "own" {
			t.Errorf("columns %v, %v, want %d", columns, err, want)
		}
		if !ran {
			w.run(def)
		}
	}
}
