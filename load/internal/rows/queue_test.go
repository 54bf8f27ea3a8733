package rows_test

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load/internal/rows"
)

// count returns a batch of the numbers from next on.
func count(mem memory.Allocator, next *int64, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	for range n {
		b.Field(0).(*array.Int64Builder).Append(*next)
		*next++
	}
	return b.NewRecordBatch()
}

// take returns the numbers of the first n rows and drops them.
func take(q *rows.Queue, n int) []int64 {
	var out []int64
	for _, p := range q.Peek(n) {
		for i := p.From; i < p.To; i++ {
			out = append(out, p.Batch.Column(0).(*array.Int64).Value(i))
		}
	}
	q.Drop(n)
	return out
}

func TestQueueKeepsOrder(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 1))
	var q rows.Queue
	var pushed, taken int64
	for range 2000 {
		if r.IntN(2) == 0 {
			batch := count(mem, &pushed, r.IntN(20))
			q.Push(batch)
			batch.Release()
			continue
		}
		n := r.IntN(30)
		got := take(&q, n)
		if want := min(int64(n), pushed-taken); int64(len(got)) != want {
			t.Fatalf("%d rows, not %d", len(got), want)
		}
		for _, v := range got {
			if v != taken {
				t.Fatalf("row %d where %d belongs", v, taken)
			}
			taken++
		}
		if int64(q.Len()) != pushed-taken {
			t.Fatalf("the length is %d, not %d", q.Len(), pushed-taken)
		}
	}
	q.Discard()
	if q.Len() != 0 || len(q.Peek(10)) != 0 {
		t.Errorf("%d rows after Discard", q.Len())
	}
}

func TestQueueReleases(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	var q rows.Queue
	var next int64
	for range 3 {
		batch := count(mem, &next, 10)
		q.Push(batch)
		batch.Release()
	}
	before := mem.CurrentAlloc()
	q.Drop(9)
	if mem.CurrentAlloc() != before {
		t.Error("a batch with a row left is released")
	}
	q.Drop(1)
	if mem.CurrentAlloc() >= before {
		t.Error("a batch without rows left is kept")
	}
	q.Drop(1000)
	mem.AssertSize(t, 0)
}
