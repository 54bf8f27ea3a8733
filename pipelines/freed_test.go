package pipelines_test

import (
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestFreedMemoryIsNotUsed: every format, partition, list and codebook has the same
// bytes if the memory of batches is overwritten as soon as it is freed.
func TestFreedMemoryIsNotUsed(t *testing.T) {
	outputs := func() []definition.Output {
		return []definition.Output{
			{Path: "f.csv", Format: "csv"},
			{Path: "excel.csv", Format: "csv", Profile: "excel"},
			{Path: "f.ndjson", Format: "ndjson"},
			{Path: "f.json", Format: "json"},
			{Path: "f.parquet", Format: "parquet"},
			{Path: "f.arrow", Format: "arrow"},
			{Path: "f.xlsx", Format: "xlsx"},
			{Path: "days/", Format: "parquet", Partition: definition.PartitionDay},
			{Path: "lines/", Format: "ndjson", Partition: definition.PartitionMonth},
		}
	}
	for _, c := range []struct {
		name       string
		form       func() *formservice.Form
		definition func(w *world) *definition.Definition
		least      int // files
	}{
		{"generated", func() *formservice.Form { return generated(1200) }, func(w *world) *definition.Definition {
			def := w.definition(outputs()...)
			_, def.Extract.To = extractRange()
			return def
		}, 100},
		{"lists as outputs of their own", colourForm, func(w *world) *definition.Definition {
			return w.coloured(exploded(), outputs()...)
		}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(o pipelines.Options) map[string]string {
				w := newWorld(t, c.form())
				report, err := pipelines.Run(t.Context(), c.definition(w), o)
				if err != nil {
					t.Fatalf("%v, %+v", err, report)
				}
				return dataOnly(tree(t, w.dir))
			}
			o := options()
			o.RunID = "20260101T000000Z-0001"
			want := read(o)
			if len(want) < c.least {
				t.Errorf("%d files", len(want))
			}
			sameTree(t, want, read(o.WithMemory(loadtest.Overwriting{})))
		})
	}
}
