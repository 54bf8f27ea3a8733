// Package rows regroups record batches. A format whose bytes depend on where a
// batch ends takes its rows from a Queue in fixed counts. So equal rows give
// equal files, however they were divided into batches.
package rows

import "github.com/apache/arrow-go/v18/arrow"

// Piece is the rows [From, To) of a batch, which belongs to the queue.
type Piece struct {
	Batch    arrow.RecordBatch
	From, To int
}

// Queue retains batches until their rows are dropped. The zero value is an
// empty queue.
type Queue struct {
	batches []arrow.RecordBatch
	skip    int // rows of the first batch that are dropped already
	rows    int
	pieces  []Piece
}

// Len is the number of rows in the queue.
func (q *Queue) Len() int { return q.rows }

// Push appends the batch's rows.
func (q *Queue) Push(batch arrow.RecordBatch) {
	if batch.NumRows() == 0 {
		return
	}
	batch.Retain()
	q.batches = append(q.batches, batch)
	q.rows += int(batch.NumRows())
}

// Peek returns the first n rows, or all if there are fewer. The pieces are
// valid until the next call of any method.
func (q *Queue) Peek(n int) []Piece {
	q.pieces = q.pieces[:0]
	from := q.skip
	for _, b := range q.batches {
		if n <= 0 {
			break
		}
		to := min(from+n, int(b.NumRows()))
		q.pieces = append(q.pieces, Piece{Batch: b, From: from, To: to})
		n -= to - from
		from = 0
	}
	return q.pieces
}

// Drop removes the first n rows, or all if there are fewer, and releases the
// batches that are used up.
func (q *Queue) Drop(n int) {
	n = min(n, q.rows)
	q.rows -= n
	q.skip += n
	done := 0
	for done < len(q.batches) && q.skip >= int(q.batches[done].NumRows()) {
		q.skip -= int(q.batches[done].NumRows())
		q.batches[done].Release()
		q.batches[done] = nil
		done++
	}
	q.batches = q.batches[done:]
}

// Discard empties the queue.
func (q *Queue) Discard() { q.Drop(q.rows) }
