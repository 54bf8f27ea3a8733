// Package rows regroups record batches. A format whose bytes depend on where a
// batch ends takes its rows from a Queue, a fixed number at a time. So equal
// rows give equal files, however they are divided into batches.
package rows

import "github.com/apache/arrow-go/v18/arrow"

// Piece is the rows [From, To) of a batch. The queue keeps that batch in memory.
type Piece struct {
	Batch    arrow.RecordBatch
	From, To int
}

// Queue holds batches until their rows are dropped. The zero value is an empty
// queue.
type Queue struct {
	batches []arrow.RecordBatch
	skip    int // rows of the first batch that are dropped already
	rows    int
	pieces  []Piece
}

// Len returns the number of rows in the queue.
func (q *Queue) Len() int { return q.rows }

// Push appends the batch's rows to the queue.
func (q *Queue) Push(batch arrow.RecordBatch) {
	if batch.NumRows() == 0 {
		return
	}
	batch.Retain()
	q.batches = append(q.batches, batch)
	q.rows += int(batch.NumRows())
}

// Peek returns the first n rows, or all if there are fewer, as pieces of
// batches. The pieces are valid until the next call of any method.
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

// Drop removes the first n rows, or all if there are fewer. It releases the
// batches of which no row is left.
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

// Discard removes all rows from the queue.
func (q *Queue) Discard() { q.Drop(q.rows) }
