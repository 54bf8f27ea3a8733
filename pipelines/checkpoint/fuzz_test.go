package checkpoint

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// sampled are the objects of a checkpoint of two pieces.
func sampled(f *testing.F) map[string][]byte {
	f.Helper()
	c := opened(f, remoteState(f))
	begin(f, c)
	write(f, c, draft{window: "01-01/01-02", after: First, through: 9, ids: []int64{1, 2, 7}, rejects: []int64{4}, batch: 2, grows: true}, draft{window: "01-01/01-02", after: 9, through: Last})
	names, err := c.list(f.Context())
	must(f, err)
	objects := map[string][]byte{}
	for _, name := range names {
		objects[name], err = c.get(f.Context(), name)
		must(f, err)
	}
	return objects
}

// FuzzRecord reads records that anybody may have written. One that is taken
// agrees with itself, and is written again and read as the same.
func FuzzRecord(f *testing.F) {
	for name, data := range sampled(f) {
		if _, isRecord, ok := pieceOf(name); ok && isRecord {
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
		p, err := r.piece(Piece{number: 3})
		if err != nil {
			return
		}
		n := p.Results()
		if n != int64(p.IDs.Len()) || p.After > p.Through || p.number != 3 {
			t.Fatalf("%+v is taken", p)
		}
		if n > 0 && (p.IDs.Min() <= p.After || p.IDs.Max() > p.Through) {
			t.Fatalf("ids %d to %d lie in (%d, %d]", p.IDs.Min(), p.IDs.Max(), p.After, p.Through)
		}
		chain := chainOf(p.Window, []Piece{p})
		for _, g := range chain.Gaps() {
			if g.After >= g.Through || len(chain.Pieces) > 0 && g.After < p.Through && g.Through > p.After {
				t.Fatalf("the chain of (%d, %d] lacks %+v", p.After, p.Through, g)
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			return // a year that JSON has no text for
		}
		var same record
		if err := json.Unmarshal(again, &same); err != nil {
			t.Fatal(err)
		}
		q, err := same.piece(Piece{number: 3})
		if err != nil || !q.IDs.Equal(p.IDs) || q.Window != p.Window || q.After != p.After || q.Through != p.Through || q.Results() != n {
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
		c := opened(t, remoteState(t))
		must(t, c.put(t.Context(), headerName, data))
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
			for n, column := range EncodeColumns(columns) {
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

// FuzzRows writes ids in chains of pieces as the input lays them out, and reads
// them merged: sorted, each with its own values. With one bit of an object
// changed the same rows are read, or none of that piece.
func FuzzRows(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 1, 2}, uint16(9), uint8(3))
	f.Add([]byte{0, 0, 64, 128, 1, 65, 129, 193, 2, 2, 130}, uint16(0), uint8(7))
	f.Add([]byte{3, 3, 3, 255, 192, 63, 127}, uint16(700), uint8(1))
	f.Add([]byte{}, uint16(0), uint8(0))
	f.Fuzz(func(t *testing.T, layout []byte, place uint16, change uint8) {
		if len(layout) > 200 {
			return
		}
		c := opened(t, remoteState(t))
		begin(t, c)
		want := map[int64]string{}
		drafts := make([][]draft, 4)
		for i, b := range layout { // two bits say the chain, others what begins with the id
			id, n := int64(i), b&3
			list := drafts[n]
			if len(list) == 0 || b&64 != 0 {
				after := First
				if len(list) > 0 {
					after = id - 1
					list[len(list)-1].through = after
				}
				list = append(list, draft{window: []string{"01-01/01-02", "01-02/01-03", "01-03/01-04", "01-04/01-05"}[n], after: after, through: Last, batch: 1 + int(b>>2)&7, grows: b&32 != 0})
			}
			d := &list[len(list)-1]
			if b&128 != 0 {
				d.rejects = append(d.rejects, id)
			} else {
				added := 0
				if d.grows {
					added = len(d.ids) / d.batch
				}
				want[id] = rowText(added, id)
				d.ids = append(d.ids, id)
			}
			drafts[n] = list
		}
		for _, list := range drafts {
			write(t, c, list...)
		}
		chains := found(t, c).Chains
		ids, rows := merged(t, c, chains)
		if !slices.IsSorted(ids) || len(ids) != len(want) {
			t.Fatalf("%v are read of %d", ids, len(want))
		}
		for i, id := range ids {
			if rows[i] != want[id] {
				t.Fatalf("result %d is %q, want %q", id, rows[i], want[id])
			}
		}

		names, err := c.list(t.Context())
		must(t, err)
		slices.Sort(names)
		name := names[int(place)%len(names)]
		data, err := c.get(t.Context(), name)
		must(t, err)
		data[int(place)%len(data)] ^= 1 << (change & 7)
		must(t, c.put(t.Context(), name, data))
		i, err := c.Found(t.Context())
		if err == nil {
			err = c.Verify(t.Context(), i)
		}
		if (name == headerName) != (err != nil) {
			t.Fatalf("%s is damaged: %v", name, err)
		}
		if err == nil && len(i.Faults) != 1 {
			t.Fatalf("%s is damaged: faults %v", name, i.Faults)
		}
		if err != nil {
			return
		}
		i.Usable(at(t, "02-02 12:00"), 0, func(now time.Time) time.Time { return now })
		ids, rows = merged(t, c, i.Chains)
		for n, id := range ids {
			if rows[n] != want[id] {
				t.Fatalf("%s is damaged, and result %d is %q", name, id, rows[n])
			}
		}
	})
}
