package cli

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
)

// TestEmptyPartsAreNotLoaded: statements name the parts with rows alone, but
// always the file of an output that is one file.
func TestEmptyPartsAreNotLoaded(t *testing.T) {
	parts := []load.Part{{Path: "a.ndjson", Rows: 2, Bytes: 20}, {Path: "b.ndjson", Rejected: 3}}
	for path, want := range map[string]int{"/lake/": 1, "/b.ndjson": 2} {
		w, err := writtenAt(infer.Left{Path: path, Output: definition.Output{Format: "ndjson"}, Manifest: &load.Manifest{Parts: parts}}, "")
		if err != nil || len(w.Parts) != want || w.Parts[0].Rows != 2 {
			t.Errorf("%s: %+v, %v", path, w.Parts, err)
		}
	}
}
