package pipelines

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
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
		d, out := loadtest.NewMemory(), definition.Output{Path: "out/form1.csv"}
		if dataset {
			out.Path = "lake/"
		}
		if err := d.Put(t.Context(), load.ManifestName, data, load.NoVersion); err != nil {
			t.Fatal(err)
		}
		m, _, err := manifestAt(t.Context(), d, load.ManifestName, out)
		if damaged := (*load.ManifestError)(nil); err != nil && !errors.As(err, &damaged) {
			t.Fatalf("%v after\n%s", err, data)
		}
		if err != nil {
			return
		}
		if columns, err := columnsOf(m); err != nil || len(columns) == 0 && len(m.Parts) > 0 {
			t.Fatalf("%d columns, %v, of\n%s", len(columns), err, data)
		}
		for _, p := range m.Parts {
			if _, err := load.ParsePartName(p.Path); err != nil && dataset {
				t.Fatalf("%v is taken of\n%s", err, data)
			}
		}
	})
}

// FuzzSegment damages a file of the spool: one that does not hold what was
// written is refused before Arrow's reader, which trusts its lengths, sees it.
func FuzzSegment(f *testing.F) {
	s, err := openSpool(f.TempDir(), "run1")
	if err != nil {
		f.Fatal(err)
	}
	batch := loadtest.Random(memory.NewGoAllocator(), loadtest.Columns("id", arrow.PrimitiveTypes.Int64, "t", arrow.BinaryTypes.String), 5, 1)
	defer batch.Release()
	seg := s.segment(1, 0)
	if err := errors.Join(seg.write(batch), seg.close()); err != nil {
		f.Fatal(err)
	}
	written, err := os.ReadFile(seg.path(seg.files[0].Name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(written)
	f.Add(written[:len(written)/2])
	f.Add([]byte("\xff\xff\xff\xff\x10\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		folder, file := t.TempDir(), seg.files[0]
		if err := os.WriteFile(filepath.Join(folder, file.Name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (&spool{folder: folder}).verify(file); (err == nil) != bytes.Equal(data, written) {
			t.Fatalf("%v of a file of %d bytes", err, len(data))
		}
	})
}

// FuzzIDSet reads sets of ids that anybody may have written: what is taken is a
// set that is written again and read as the same, anything else is errIDs.
func FuzzIDSet(f *testing.F) {
	for _, ids := range [][]uint64{{}, {0}, {1, 2, 3}, {7, 1 << 40, 1<<63 - 1}} {
		data, _, err := idSet(roaring64.BitmapOf(ids...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ids, err := readIDs(data)
		if err != nil {
			return
		}
		if ids.GetCardinality() > 1<<16 {
			return // a few bytes may stand for more ids than a test has memory for
		}
		again, _, err := idSet(ids)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := readIDs(again); err != nil || !same.Equals(roaring64.BitmapOf(ids.ToArray()...)) {
			t.Errorf("%v: it is read as another set", err)
		}
	})
}
