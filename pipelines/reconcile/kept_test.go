package reconcile

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
)

// FuzzRestore restores snapshots that anybody may have written to a destination. One that
// is taken is encoded and restored as the same.
func FuzzRestore(f *testing.F) {
	c := checkpoint.OpenAt(loadtest.NewMemory(), "", "key", func() error { return nil })
	if err := c.Begin(f.Context(), checkpoint.Header{RunID: "r1", Runs: []string{"r1"}}); err != nil {
		f.Fatal(err)
	}
	day := func(n int) extract.Window {
		from := time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
		return extract.Window{From: from, To: from.AddDate(0, 0, 1)}
	}
	piece, err := c.Write().End(f.Context(), checkpoint.Piece{
		Window: day(1), After: checkpoint.First, Through: checkpoint.Last, ReadAt: day(2).From, Run: "r1", IDs: roaring64.New(),
	})
	if err != nil {
		f.Fatal(err)
	}
	older := &reading.Older{Window: day(3), Counts: []int64{4}}
	s := &Snapshot{
		Interval: interval.Interval{Asked: day(1), Read: day(1)}, Labels: map[string]string{"1": "Answer"},
		Replaced: Replaced{Read: day(1), Older: []extract.Window{day(3)}}, Changes: &load.Changes{Method: load.MethodLookback},
		Named: 1, Older: 1, whole: true, own: 3, older: 4,
		Windows: []*reading.Window{
			{Planned: extract.Planned{Window: day(1), Count: extract.Unknown}, Reading: reading.Reading{Chains: []checkpoint.Chain{{Window: day(1), Pieces: []checkpoint.Piece{piece}}}}},
			{Planned: extract.Planned{Window: day(3)}, Older: older},
			{Planned: extract.Planned{Window: day(4)}, Older: older},
			{Undated: &reading.Undated{Only: roaring64.New()}, Counts: []int64{2, 3}},
			{Undated: &reading.Undated{}},
		},
	}
	data, err := json.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	restore := func(ctx context.Context, data []byte) (*Snapshot, error) {
		return Restore(ctx, &reading.Reader{Checkpoint: c, Schema: &schemas.Schema{}}, data)
	}
	if _, err := restore(f.Context(), data); err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"windows":[{"span":7}]}`))
	f.Add([]byte(`{"windows":[{"pieces":["0000009"]},{"pieces":["a-0000001","header"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := restore(t.Context(), data)
		if err != nil {
			return
		}
		once, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := restore(t.Context(), once)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if twice, err := json.Marshal(again); err != nil || string(once) != string(twice) {
			t.Fatalf("%v: it was %s, and is %s", err, once, twice)
		}
		for i, w := range s.Windows {
			if is := again.Windows[i]; !w.Done || (w.IDs == nil) != (is.IDs == nil) || (w.Undated == nil) != (is.Undated == nil) || (w.Older == nil) != (is.Older == nil) {
				t.Fatalf("window %d was %+v, and is %+v", i, w, is)
			}
		}
	})
}
