package checkpoint

import (
	"context"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// RowsOf calls visit with record batches of all rows in chains, in ascending order
// of id. The chains have no ids in common. A batch is valid only during the call.
func (c *Checkpoint) RowsOf(ctx context.Context, chains []Chain, visit func(arrow.RecordBatch) error) error {
	if len(chains) == 1 {
		for _, p := range chains[0].Pieces {
			if err := c.Rows(ctx, p, visit); err != nil {
				return err
			}
		}
		return nil
	}
	m := merge{c: c, visit: visit}
	defer m.release()
	for _, chain := range chains {
		m.cursors = append(m.cursors, &cursor{rest: chain.Pieces})
	}
	for {
		more, err := m.next(ctx)
		if !more || err != nil {
			return err
		}
	}
}

// merge visits the rows of several chains in the order of their ids.
type merge struct {
	c       *Checkpoint
	visit   func(arrow.RecordBatch) error
	cursors []*cursor
}

// cursor is a position in the rows of one chain.
type cursor struct {
	rest    []Piece // pieces that are not loaded yet
	batches []arrow.RecordBatch
	at      int64   // next row in the first batch
	ids     []int64 // ids of the rows from the next one to the end of its piece
}

// next visits the next rows of the chain with the smallest next id. It stops before it would
// pass the next id of another chain, or at the batch's end. more is false if no rows are left.
func (m *merge) next(ctx context.Context) (more bool, err error) {
	var least *cursor
	bound := int64(math.MaxInt64) // the smallest next id of the other chains
	for _, k := range m.cursors {
		if err := m.load(ctx, k); err != nil {
			return false, err
		}
		switch {
		case len(k.ids) == 0:
		case least == nil:
			least = k
		case k.ids[0] < least.ids[0]:
			bound, least = least.ids[0], k
		default:
			bound = min(bound, k.ids[0])
		}
	}
	if least == nil {
		return false, nil
	}
	batch, n := least.batches[0], int64(0)
	for left := batch.NumRows() - least.at; n < left && len(least.ids) > 0 && least.ids[0] <= bound; n++ {
		least.ids = least.ids[1:]
	}
	part := batch.NewSlice(least.at, least.at+n)
	defer part.Release()
	if least.at += n; least.at == batch.NumRows() {
		defer batch.Release()
		least.batches, least.at = least.batches[1:], 0
	}
	return true, m.visit(part)
}

// load loads the chain's next piece if the cursor is at the end of a piece. At
// the end of the chain no ids are left.
func (m *merge) load(ctx context.Context, k *cursor) error {
	for len(k.ids) == 0 && len(k.rest) > 0 {
		p := k.rest[0]
		k.rest = k.rest[1:]
		err := m.c.Rows(ctx, p, func(b arrow.RecordBatch) error {
			b.Retain()
			k.batches = append(k.batches, b)
			return nil
		})
		if err != nil {
			return err
		}
		k.ids = slices.Collect(p.RowIDs().All())
	}
	return nil
}

func (m *merge) release() {
	for _, k := range m.cursors {
		for _, b := range k.batches {
			b.Release()
		}
	}
}
