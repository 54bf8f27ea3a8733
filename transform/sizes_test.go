package transform

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// growing counts how often memory in use had to be moved to larger memory.
type growing struct {
	memory.Allocator
	moved int
}

func (g *growing) Reallocate(size int, b []byte) []byte {
	if len(b) > 0 && size > cap(b) {
		g.moved++
	}
	return g.Allocator.Reallocate(size, b)
}

// TestSizes: a flattener reserves what another one of the form needed before.
func TestSizes(t *testing.T) {
	p, _ := benchPage(t)
	mem := &growing{Allocator: memory.NewGoAllocator()}
	var sizes Sizes
	flatten := func(pages int) (moved int) {
		t.Helper()
		before := mem.moved
		f, err := NewFlattener(schema(t, benchSchema(t, true)...), Options{
			Zone: zone(t, "UTC"), Mem: mem, Sizes: &sizes, Emit: func(arrow.RecordBatch) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		for range pages {
			if err := f.Append(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		return mem.moved - before
	}
	if flatten(10) == 0 {
		t.Error("the first batch never grew: the test shows nothing")
	}
	for _, pages := range []int{10, 11, 1, 10} {
		if n := flatten(pages); n > 0 {
			t.Errorf("%d pages after 10: memory was moved %d times", pages, n)
		}
	}
	if flatten(40) == 0 {
		t.Error("a batch of 4000 rows fitted into what 1000 needed")
	}
}
