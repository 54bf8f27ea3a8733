package checkpoint

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// merged gives the ids and the rows of chains as RowsOf does.
func merged(t testing.TB, c *Checkpoint, chains []Chain) (ids []int64, rows []string) {
	t.Helper()
	must(t, c.RowsOf(t.Context(), chains, func(b arrow.RecordBatch) error {
		if b.NumRows() == 0 {
			t.Error("an empty batch")
		}
		ids, rows = append(ids, idsOf(b)...), append(rows, rowsOf(b)...)
		return nil
	}))
	return ids, rows
}

// TestRowsOf gives the rows of all chains in ascending order of id.
func TestRowsOf(t *testing.T) {
	places(t, func(t *testing.T, open func() *Checkpoint) {
		c := open()
		p := write(
			t, c,
			draft{window: "01-01/01-02", after: First, through: 5, ids: []int64{1, 5}},
			draft{window: "01-01/01-02", after: 5, through: Last, ids: []int64{9, 10}, rejects: []int64{8}},
			draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{2, 3, 7}, rejects: []int64{4, 6}, batch: 2},
			draft{window: "01-03/01-04", after: First, through: Last},
			draft{window: "01-04/01-05", after: First, through: Last, rejects: []int64{20}},
		)
		one, two := Chain{Pieces: p[:2]}, Chain{Pieces: p[2:3]}
		for _, x := range []struct {
			chains []Chain
			want   []int64
		}{
			{nil, nil},
			{[]Chain{{}}, nil},
			{[]Chain{{Pieces: p[3:4]}}, nil},
			{[]Chain{{Pieces: p[3:4]}, {Pieces: p[4:5]}}, nil},
			{[]Chain{one}, []int64{1, 5, 9, 10}},
			{[]Chain{one, two}, []int64{1, 2, 3, 5, 7, 9, 10}},
			{[]Chain{two, one}, []int64{1, 2, 3, 5, 7, 9, 10}},
			{[]Chain{two, {Pieces: p[3:4]}, one, {Pieces: p[4:5]}}, []int64{1, 2, 3, 5, 7, 9, 10}},
		} {
			if ids, _ := merged(t, c, x.chains); !slices.Equal(ids, x.want) {
				t.Errorf("the ids are %v, want %v", ids, x.want)
			}
		}
		must(t, c.Close(t.Context(), false))
	})
}

// TestRowsOfAreThoseThatWereWritten: random ids in random chains of random
// pieces and batches, with columns that are added within a piece, come out
// sorted, each with the values that were written.
func TestRowsOfAreThoseThatWereWritten(t *testing.T) {
	for seed := range int64(60) {
		random := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // small
		c := opened(t, folderState(t.TempDir()))
		want := map[int64]string{}
		lists := make([][]int64, 1+random.IntN(5))
		for id := range int64(1 + random.IntN(400)) {
			if random.IntN(3) > 0 { // some ids are of nobody
				n := random.IntN(len(lists))
				if random.IntN(2) == 0 {
					n = int(id/32) % len(lists) //nolint:gosec // small; runs of ids in one chain
				}
				lists[n] = append(lists[n], id*(1+seed%3*1_000_000_007))
			}
		}
		chains := make([]Chain, 0, len(lists))
		for _, ids := range lists {
			var chain Chain
			after := First
			for len(ids) > 0 || len(chain.Pieces) == 0 {
				n := min(len(ids), 1+random.IntN(60))
				d := draft{window: "01-01/01-02", after: after, through: Last, batch: 1 + random.IntN(20), grows: random.IntN(2) == 0}
				for _, id := range ids[:n] {
					if random.IntN(10) == 0 {
						d.rejects = append(d.rejects, id)
						continue
					}
					added := 0
					if d.grows {
						added = len(d.ids) / d.batch
					}
					want[id] = rowText(added, id)
					d.ids = append(d.ids, id)
				}
				if ids = ids[n:]; len(ids) > 0 {
					d.through = ids[0] - 1
				}
				after = d.through
				chain.Pieces = append(chain.Pieces, write(t, c, d)...)
			}
			chains = append(chains, chain)
		}
		random.Shuffle(len(chains), func(i, j int) { chains[i], chains[j] = chains[j], chains[i] })
		ids, rows := merged(t, c, chains)
		if !slices.IsSorted(ids) || len(ids) != len(want) {
			t.Fatalf("seed %d: %d ids, want %d sorted ones: %v", seed, len(ids), len(want), ids)
		}
		for i, id := range ids {
			if rows[i] != want[id] {
				t.Fatalf("seed %d: result %d is %q, want %q", seed, id, rows[i], want[id])
			}
		}
		must(t, c.Close(t.Context(), false))
	}
}

// TestRowsOfStops at the first error of the visitor.
func TestRowsOfStops(t *testing.T) {
	c := opened(t, folderState(t.TempDir()))
	p := write(t, c, draft{window: "01-01/01-02", after: First, through: Last, ids: []int64{1, 3, 5}, batch: 1}, draft{window: "01-02/01-03", after: First, through: Last, ids: []int64{2, 4}})
	enough := errors.New("enough")
	for _, chains := range [][]Chain{{{Pieces: p[:1]}}, {{Pieces: p[:1]}, {Pieces: p[1:]}}} {
		n := 0
		err := c.RowsOf(t.Context(), chains, func(arrow.RecordBatch) error {
			if n++; n == 2 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || n != 2 {
			t.Errorf("%d batches, %v", n, err)
		}
	}
	must(t, c.Close(t.Context(), false))
}

// TestWriterSkipsEmptyBatches: they would cost a stream, and a piece without
// rows has no object for them.
func TestWriterSkipsEmptyBatches(t *testing.T) {
	c := opened(t, folderState(t.TempDir()))
	w := c.Write()
	empty := batch(0)
	must(t, w.Add(empty))
	empty.Release()
	if w.Bytes() != 0 {
		t.Errorf("nothing takes %d bytes", w.Bytes())
	}
	p, err := w.End(t.Context(), Piece{Window: window(t, "01-01/01-02"), After: First, Through: Last})
	must(t, err)
	names, err := c.list(t.Context())
	must(t, err)
	if len(p.streams) != 0 || len(names) != 1 {
		t.Errorf("%d streams, objects %v", len(p.streams), names)
	}
	must(t, c.Forget(t.Context(), p))
	must(t, c.Close(t.Context(), false))
}
