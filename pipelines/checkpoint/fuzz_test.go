package checkpoint

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/loadtest"
)

// sampled are the objects of a checkpoint of two pieces.
func sampled(f *testing.F) map[string][]byte {
	f.Helper()
	c := OpenAt(loadtest.NewMemory(), "", "key")
	begin(f, c)
	write(f, c, draft{window: "01-01/01-02", after: First, through: 9, ids: []uint64{1, 2, 7}, rejects: []uint64{4}, batch: 2, grows: true}, draft{window: "01-01/01-02", after: 9, through: Last})
	names, err := c.store.list(f.Context())
	must(f, err)
	objects := map[string][]byte{}
	for _, name := range names {
		objects[name], err = c.store.get(f.Context(), name)
		must(f, err)
	}
	return objects
}

// FuzzRecord reads records that anybody may have written. One that is taken
// agrees with itself, and is written again and read as the same.
func FuzzRecord(f *testing.F) {
	for name, data := range sampled(f) {
		if _, isRecord, ok := numberOf(name); ok && isRecord {
			body, err := unseal(data)
			must(f, err)
			f.Add(body)
		}
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"after":-1,"through":9223372036854775807,"ids":"AAAAAAAAAAA=","stats":{"rows":0},"streams":[{"bytes":-1,"crc32c":0}]}`))
	f.Add([]byte(`{"after":5,"through":1,"stats":{"rows":-1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if sealed, err := unseal(seal(body)); err != nil || string(sealed) != string(body) {
			t.Fatalf("%v: sealed it is another", err)
		}
		var r record
		if json.Unmarshal(body, &r) != nil {
			return
		}
		p, err := r.piece(3)
		if err != nil {
			return
		}
		n := p.Results()
		if n < 0 || uint64(n) != p.IDs.GetCardinality() || p.After >= p.Through || p.number != 3 {
			t.Fatalf("%+v is taken", p)
		}
		if n > 0 && (int64(p.IDs.Minimum()) <= p.After || int64(p.IDs.Maximum()) > p.Through) { //nolint:gosec // as they were kept
			t.Fatalf("ids %d to %d lie in (%d, %d]", p.IDs.Minimum(), p.IDs.Maximum(), p.After, p.Through)
		}
		chain := chainOf(p.Window, []Piece{p})
		if len(chain.Pieces) > 0 && chain.Through() != p.Through {
			t.Fatalf("the chain ends at %d", chain.Through())
		}
		again, err := json.Marshal(r)
		if err != nil {
			return // a year that JSON has no text for
		}
		var same record
		if err := json.Unmarshal(again, &same); err != nil {
			t.Fatal(err)
		}
		q, err := same.piece(3)
		if err != nil || !q.IDs.Equals(p.IDs) || q.Window != p.Window || q.After != p.After || q.Through != p.Through || q.Results() != n {
			t.Fatalf("%v: %+v is read as %+v", err, p, q)
		}
	})
}

// FuzzHeader reads headers that anybody may have written: one that is taken is
// of this version, and its columns are ones that a schema may have.
func FuzzHeader(f *testing.F) {
	body, err := unseal(sampled(f)[headerName])
	must(f, err)
	f.Add(body, true)
	f.Add([]byte(`{"version":1,"run_id":"r","inferred":[{"name":"a","type":"int64","from":"result_id"}],"counts":[{"window":{"from":"..","to":".."},"n":-1}]}`), true)
	f.Add([]byte(`{"version":1,"opened_at":"yesterday"}`), true)
	f.Add([]byte(`00000000 {}`), false)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			data = seal(data)
		}
		c := OpenAt(loadtest.NewMemory(), "", "key")
		must(t, c.store.put(t.Context(), headerName, data))
		i, err := c.Found(t.Context())
		if err != nil {
			if c.Begun() {
				t.Fatal("what is refused is begun")
			}
			return
		}
		if i.Version != headerVersion || !c.Begun() || len(i.Chains)+len(i.Faults) > 0 {
			t.Fatalf("%+v is taken", i)
		}
		if columns, err := DecodeColumns(i.Inferred); err == nil {
			for n, column := range encodeColumns(columns) {
				if column.Name != i.Inferred[n].Name {
					t.Fatalf("column %+v is read as %+v", i.Inferred[n], column)
				}
			}
		}
		must(t, c.Begin(t.Context(), i.Header))
		again, err := c.Found(t.Context())
		if err != nil || again.RunID != i.RunID || len(again.Counts) != len(i.Counts) {
			t.Fatalf("%v: written again it is %+v", err, again)
		}
	})
}

// FuzzRows reads rows that anybody may have written, with checksums that fit and
// with some that do not: what does not agree is an error, never a panic.
func FuzzRows(f *testing.F) {
	rows := sampled(f)["0000000-rows"]
	f.Add(rows, int64(len(rows)), true)
	f.Add(rows[:len(rows)/2], int64(len(rows)/2), true)
	f.Add(rows, int64(-1), true)
	f.Add(rows, int64(1)<<62, false)
	f.Add([]byte("ARROW1"), int64(3), true)
	f.Fuzz(func(t *testing.T, data []byte, n int64, fits bool) {
		c := OpenAt(loadtest.NewMemory(), "", "key")
		must(t, c.store.put(t.Context(), objectName(0, rowsSuffix), data))
		s := stream{Bytes: n}
		if inside := n >= 0 && n <= int64(len(data)); fits && inside {
			s.CRC = crc32.Checksum(data[:n], castagnoli)
		}
		p := Piece{streams: []stream{s}}
		read := 0
		err := c.Rows(t.Context(), p, func(b arrow.RecordBatch) error {
			if read++; read > 1000 {
				return errors.New("enough")
			}
			_ = b.NumRows()
			return nil
		})
		if n < 0 || n > int64(len(data)) {
			if err == nil {
				t.Fatalf("a stream of %d bytes is read from %d", n, len(data))
			}
		}
	})
}
