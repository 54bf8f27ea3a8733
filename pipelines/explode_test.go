package pipelines_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
)

// exploded asks for a child output.
func exploded() schemas.Column { return schemas.Column{Explode: true} }

// childRows are the rows of colourForm's child output, by id and position.
const childRows = "id,position,colours\n1,1,red\n1,2,blue\n4,1,blue\n5,1,light green\n5,2,red\n8,1,amber\n9,1,red\n9,2,red\n"

// TestResetOfADatasetThatWasExploded: the reset looks at what the last run wrote, and
// so sees that the definition no longer asks for rows of a list.
func TestResetOfADatasetThatWasExploded(t *testing.T) {
	w := newWorld(t, colourForm())
	w.run(w.coloured(exploded(), days()))
	_, err := upkeep.ResetState(t.Context(), w.coloured(schemas.Column{}, days()), options().Options, time.Time{})
	if err != nil {
		t.Error(err)
	}
}

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

// TestExplodeReadsNoOlderPartInVain: the ids of a child's part are those of its
// results, however many rows it has.
func TestExplodeReadsNoOlderPartInVain(t *testing.T) {
	form := colourForm()
	form.Delete(1)
	form.Delete(2)
	if _, err := form.Insert(picked(1, 1, "red", "blue", "aqua")); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, form)
	for _, now := range []string{"2026-01-05 00:00:00", "2026-01-09 00:00:00"} {
		def := w.coloured(exploded(), definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
		def.Extract.From, def.Extract.To = time.Time{}, time.Time{}
		def.Extract.Incremental, def.Extract.Lookback = true, 24*time.Hour
		o := options()
		o.Now = zoned(t, w, now)
		report := w.runBy(def, o)
		if n := report.Forms[0].Older; n != 0 {
			t.Errorf("%s: %d windows of older parts were read", now, n)
		}
		form.Delete(2)
		if _, err := form.Insert(picked(2, 8, "red")); err != nil { // its id lies among those of the first day
			t.Fatal(err)
		}
	}
}
