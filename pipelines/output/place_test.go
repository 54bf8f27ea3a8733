package output

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/definition"
)

// FuzzManifestAt reads manifests that anybody may have written: what is taken
// has columns, and parts that a run may remove; anything else is told as damage.
func FuzzManifestAt(f *testing.F) {
	m := load.Manifest{
		Format: "csv", Pipeline: "p", Form: "form1", RunID: "r", Rows: 1,
		Schema: []load.Column{{Name: "id", Type: "int64", From: "result_id"}, {Name: "position", Type: "int64", From: "item:1"}, {Name: "c", Type: "string", From: "item:1"}},
		Parts:  []load.Part{{Path: "part-min-20260101T000000-000001-0000.csv", Rows: 1, MinID: 1, MaxID: 1, SHA256: strings.Repeat("0", 64), To: load.Wall(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}},
	}
	data, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, change := range [][2]string{{"", ""}, {`"int64"`, `"int65"`}, {`"result_id"`, `"item:"`}, {`"name": "id"`, `"name": ""`}, {"part-min", "precious"}, {`"form": "form1"`, `"form": ""`}, {`"item:1"`, `"item:2"`}} {
		f.Add([]byte(strings.Replace(string(data), change[0], change[1], 1)), true)
		f.Add([]byte(strings.Replace(string(data), change[0], change[1], 1)), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, dataset bool) {
		out := definition.Output{Path: "out/form1.csv"}
		if dataset {
			out.Path = "lake/"
		}
		d, err := local.New(t.TempDir())
		if err == nil {
			err = d.Put(t.Context(), load.ManifestName, data, load.NoVersion)
		}
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := ManifestAt(t.Context(), d, load.ManifestName, out)
		if damaged := (*load.ManifestError)(nil); err != nil && !errors.As(err, &damaged) {
			t.Fatalf("%v after\n%s", err, data)
		}
		if err != nil {
			return
		}
		if columns, err := ColumnsOf(m); err != nil || len(columns) == 0 && len(m.Parts) > 0 {
			t.Fatalf("%d columns, %v, of\n%s", len(columns), err, data)
		}
		for _, p := range m.Parts {
			if _, err := load.ParsePartName(p.Path); err != nil && dataset {
				t.Fatalf("%v is taken of\n%s", err, data)
			}
		}
	})
}
