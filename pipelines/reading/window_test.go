package reading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

func TestPlausibleWindow(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		rows   int64
		want   bool
	}{
		{nil, 5, false},
		{[]int64{5}, 5, true},
		{[]int64{5, 5, 5}, 4, false},
		{[]int64{5, 8}, 6, true},
		{[]int64{8, 5}, 5, true},
		{[]int64{5, 6}, 7, true}, // one came and went
		{[]int64{5, 6}, 4, true},
		{[]int64{5, 6}, 8, false},
		{[]int64{5, 6}, 3, false},
	} {
		w := Window{Counts: c.counts, Reading: Reading{Stats: transform.Stats{Rows: c.rows - 1, Rejected: 1}}}
		if got := w.Plausible(); got != c.want {
			t.Errorf("%d of %v: %t", c.rows, c.counts, got)
		}
	}
}

// TestPlausibleSinceLastReading: counts of before the last one ahead of the reading do not widen
// what is plausible.
func TestPlausibleSinceLastReading(t *testing.T) {
	r := &Reader{Form: Form{At: func(string) {}}}
	w := &Window{Counts: []int64{10, 7}, Reading: Reading{Chains: []checkpoint.Chain{{Pieces: []checkpoint.Piece{{Stats: transform.Stats{Rows: 4}}}}}}}
	r.isRead(w)
	if w.Counts = append(w.Counts, 8); w.Plausible() {
		t.Errorf("%d results are plausible by counts of 7 and 8", w.Results())
	}
}

func TestRowIDsLeaveRejectsOut(t *testing.T) {
	w := &Window{Reading: Reading{IDs: idset.Of(3, 5, 9), Rejects: []transform.Reject{{ResultID: 3}, {ResultID: 9}}, Stats: transform.Stats{Rows: 1, Rejected: 2}}}
	if ids := w.RowIDs(); !ids.Equal(idset.Of(5)) || w.IDs.Len() != 3 {
		t.Errorf("%v of %v", ids, w.IDs)
	}
}

func TestRejectsAreCountedByResult(t *testing.T) {
	piece := func(ids ...int64) checkpoint.Piece {
		p := checkpoint.Piece{IDs: idset.Of(ids...), Stats: transform.Stats{
			Rejected: int64(len(ids)), Rejects: map[transform.Fault]int64{{Column: "c", Reason: "r"}: int64(len(ids))},
		}}
		for _, id := range ids {
			p.Rejects = append(p.Rejects, transform.Reject{ResultID: id})
		}
		return p
	}
	for _, c := range []struct {
		pieces []checkpoint.Piece
		most   int
		fails  bool
	}{
		{[]checkpoint.Piece{piece(1, 2)}, 2, false},
		{[]checkpoint.Piece{piece(1, 2), piece(2)}, 2, false},
		{[]checkpoint.Piece{piece(1, 2), piece(3)}, 2, true},
		{[]checkpoint.Piece{piece(1)}, 0, true},
		{nil, 0, false},
	} {
		r, rejected := &Reader{Schema: &schemas.Schema{MaxRejects: c.most}}, int64(0)
		for _, p := range c.pieces {
			if err := r.Take(&Window{}, p); err != nil {
				t.Fatal(err)
			}
			rejected += p.Stats.Rejected
		}
		err := r.checkRejects()
		if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("max_rejects allows %d (%d in column c: r)", c.most, rejected)) {
			t.Errorf("%d pieces, at most %d: %v", len(c.pieces), c.most, err)
		}
		for _, p := range c.pieces {
			r.rejects.count(p, -1)
		}
		if err := r.checkRejects(); err != nil {
			t.Errorf("once they are forgotten: %v", err)
		}
	}
}

// countOf is a client that counts results by ids alone.
type countOf struct {
	extract.Client
	count func(extract.IDRange) int64
}

func (c countOf) Count(_ context.Context, _ string, q extract.CountQuery) (int64, error) {
	return c.count(q.IDs), nil
}

// TestMiscounted: counts over ids find the pieces that hold other results than the service counts,
// and the window goes on without them.
func TestMiscounted(t *testing.T) {
	r := Reading{IDs: idset.Of(1, 11, 12, 21, 31, 41), Chains: []checkpoint.Chain{{}}}
	for after := int64(0); after < 50; after += 10 {
		p := checkpoint.Piece{After: after, Through: after + 10, Stats: transform.Stats{Rows: 2, Rejected: 1}}
		r.Chains[0].Pieces = append(r.Chains[0].Pieces, p)
	}
	client := countOf{count: func(ids extract.IDRange) (n int64) {
		for i, there := range []int64{3, 4, 3, 3, 1} {
			if at := int64(10 * i); at >= ids.Min-1 && at < ids.Max {
				n += there
			}
		}
		return n
	}}
	found, err := Form{Client: client}.miscounted(t.Context(), extract.Window{}, r.Pieces(), 14)
	if err != nil || len(found) != 2 || found[0].After != 10 || found[1].After != 40 {
		t.Fatalf("%+v, %v", found, err)
	}
	if left := r.without(found); !left.IDs.Equal(idset.Of(1, 21, 31)) || left.Results() != 9 || len(left.Pieces()) != 3 {
		t.Errorf("%+v", left)
	}
}
