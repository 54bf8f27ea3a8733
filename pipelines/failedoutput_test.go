package pipelines_test

import (
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/pipelines/definition"
)

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
