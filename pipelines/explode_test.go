package pipelines_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// exploded asks for a child output.
func exploded() schemas.Column { return schemas.Column{Explode: true} }

// childRows are the rows of colourForm's child output, by id and position.
const childRows = "id,position,colours\n1,1,red\n1,2,blue\n4,1,blue\n5,1,light green\n5,2,red\n8,1,amber\n9,1,red\n9,2,red\n"

func TestExplodeGivesARowForEachElement(t *testing.T) {
	w := newWorld(t, colourForm())
	def := func() *definition.Definition {
		return w.coloured(exploded(),
			definition.Output{Path: "f.csv", Format: "csv"}, definition.Output{Path: "z.csv.gz", Format: "csv", Compression: "gzip"},
			definition.Output{Path: "f.parquet", Format: "parquet"}, definition.Output{Path: "f.ndjson", Format: "ndjson"},
			definition.Output{Path: "days/", Format: "parquet", Partition: definition.PartitionDay},
			definition.Output{Path: "lines/", Format: "ndjson"})
	}
	w.run(def())
	if got := w.read("f__colours.csv"); got != childRows {
		t.Errorf("the child is %s", got)
	}
	if got := w.read("f__colours.ndjson"); !strings.HasPrefix(got, `{"id":1,"position":1,"colours":"red"}`) {
		t.Errorf("the child begins with %.60s", got)
	}
	m := readManifest(t, w.path("days__colours/_manifest.json"))
	want := []load.Column{
		{Name: "id", Type: "int64", From: "result_id"},
		{Name: "position", Type: "int64", From: "item:206"},
		{Name: "colours", Type: "string", From: "item:206", Label: "Colours", ItemType: "checkbox", Index: 2},
	}
	if !reflect.DeepEqual(m.Schema, want) {
		t.Errorf("schema %+v, want %+v", m.Schema, want)
	}
	if m.Rows != 8 || len(m.Parts) != 3 || m.Verified.Extracted != 9 || !m.Verified.Match { // nothing was chosen on the third day
		t.Errorf("rows %d, parts %d, verified %+v", m.Rows, len(m.Parts), m.Verified)
	}
	f := readManifest(t, w.path("f__colours.csv.manifest.json"))
	if f.Rows != 8 || f.Parts[0].Rows != 8 || f.Parts[0].MinID != 1 || f.Parts[0].MaxID != 9 {
		t.Errorf("the file's manifest tells of %+v", f.Parts)
	}
	before := dataOnly(tree(t, w.dir))
	w.run(def())
	sameTree(t, before, dataOnly(tree(t, w.dir)))
}
