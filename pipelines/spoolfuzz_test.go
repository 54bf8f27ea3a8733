package pipelines

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzSpoolHeader reads headers that anybody may have written: what is taken
// is written and read as the same.
func FuzzSpoolHeader(f *testing.F) {
	data, err := json.Marshal(header("nightly", "orders"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":2,"form":"orders"}`))
	f.Add([]byte(`{"version":1,"run_id":"../x","opened_at":"2026-02-30T00:00:00Z","body":}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeHeader(data)
		if err != nil {
			return
		}
		if h.Version != spoolVersion || h.RunID != filepath.Base(h.RunID) || h.Form == "" || h.Fingerprint == "" {
			t.Fatalf("%s is taken as %+v", data, h)
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", data, err)
		}
		if back, err := decodeHeader(again); err != nil || !back.OpenedAt.Equal(h.OpenedAt) || !reflect.DeepEqual(back.Bases, h.Bases) && len(h.Bases) > 0 {
			t.Fatalf("%+v came back as %+v (%v)", h, back, err)
		}
	})
}

// FuzzSpoolRecord reads records that anybody may have written: what is taken
// agrees with itself and names files of the spool's folder only.
func FuzzSpoolRecord(f *testing.F) {
	files := []segmentFile{{Name: "w0000001-0-0.spool", Size: 8, CRC: 1}, {Name: "w0000001-0-1.spool", Size: 9, CRC: 2}}
	for _, r := range []indexRecord{
		{Index: 1, Window: windowOf(f, 1, 1, 3), Files: files},
		{Index: 1, Window: windowOf(f, 1, 1, 0)},
		{Index: 1, Window: windowOf(f, 1, 1, 3), Files: []segmentFile{{Name: "w1-+1-0.spool"}, {Name: "../w1-1-1.spool", Size: -1}}},
	} {
		data, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, 1)
	}
	f.Add([]byte(`{"index":0,"window":{"from":null}}`), 0)
	f.Fuzz(func(t *testing.T, data []byte, index int) {
		r, err := decodeRecord(data, index)
		if err != nil {
			return
		}
		got, err := r.Window.reading()
		if err != nil || r.Index != index || got.stats.Rows < 0 || (got.stats.Rows > 0) != (len(r.Files) > 0) {
			t.Fatalf("%s is taken as %+v (%v)", data, r, err)
		}
		for _, file := range r.Files {
			if file.Name != filepath.Base(file.Name) || filepath.Ext(file.Name) != segmentExtension || file.Size <= 0 {
				t.Fatalf("%s names %+v", data, file)
			}
		}
	})
}
