package pipelines_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestReportOfAFailedOutput says what the output still holds, as an earlier run left it.
func TestReportOfAFailedOutput(t *testing.T) {
	w := newWorld(t, fourDays())
	def := w.daily(fileAndDays()...)
	first := w.run(def)
	o := watching(func(root, op, _ string) error {
		if filepath.Clean(root) == w.path("days") && op == "stage" {
			return errDisk
		}
		return nil
	})
	o.Full = true
	report, err := pipelines.Run(t.Context(), def, o)
	if !errors.Is(err, errDisk) {
		t.Fatalf("got %v", err)
	}
	held := map[string]int64{}
	for i, out := range report.Forms[0].Outputs {
		before := first.Forms[0].Outputs[i]
		if out.Rows != before.Rows || out.Parts != before.Parts || out.Bytes != before.Bytes || out.Watermark != before.Watermark || out.Rows == 0 {
			t.Errorf("%s: %+v, and before %+v", out.Path, out, before)
		}
		held[out.Error] = out.Rows
	}
	if len(held) != 2 {
		t.Errorf("not one of two outputs failed: %v", held)
	}
}

// TestReplayCountsTheLettersOfFiles: they go with the file that a run replaces.
func TestReplayCountsTheLettersOfFiles(t *testing.T) {
	r := newReplayed(t, numbered(), func(w *world) *definition.Definition {
		return w.definition(definition.Output{Path: "out.ndjson", Format: "ndjson"})
	})
	file := r.path("out.ndjson.rejects.jsonl")
	if letters := readNDJSON(t, file); len(letters) != 3 {
		t.Fatalf("dead letters %v", letters)
	}
	r.def.Schema = numbers(".") // one result still does not fit
	r.replay()
	if letters := readNDJSON(t, file); len(letters) != 1 || r.left != 1 {
		t.Errorf("dead letters %v, left %d", letters, r.left)
	}
	r.def.Schema = numbers(".")
	r.def.Schema.Columns = r.def.Schema.Columns[:1]
	r.replay()
	if left, err := filepath.Glob(file); err != nil || len(left) > 0 || r.left != 0 {
		t.Errorf("left %v and %d results, %v", left, r.left, err)
	}
}
