package transform

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestTextsAgainstArrow builds the same arrays with Arrow's own builder:
// empty ones, all nulls, no nulls, lengths around every boundary of eight.
func TestTextsAgainstArrow(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	own := &texts{bounds: bounds{mem: mem}}
	reference := array.NewStringBuilder(mem)
	defer reference.Release()
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 500, 3, 0, 129, 64} {
		for _, nulls := range []int{0, 50, 100} {
			for range n {
				if r.IntN(100) < nulls {
					own.appendNull()
					reference.AppendNull()
					continue
				}
				v := strings.Repeat("é", r.IntN(40)*r.IntN(40))
				own.append([]byte(v))
				reference.Append(v)
			}
			got, want := own.finish().(*array.String), reference.NewStringArray()
			if !array.Equal(got, want) || got.NullN() != want.NullN() || got.Len() != n {
				t.Errorf("%d values, %d %% nulls: got\n%v\nwant\n%v", n, nulls, got, want)
			}
			if err := got.ValidateFull(); err != nil {
				t.Errorf("%d values, %d %% nulls: %v", n, nulls, err)
			}
			got.Release()
			want.Release()
		}
	}
	own.append([]byte("left behind"))
	own.release()
	own.release()
}

// TestTextListsAgainstArrow does the same with lists: null, empty, with null and empty
// elements.
func TestTextListsAgainstArrow(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	own := newTextLists(mem)
	reference := array.NewListBuilder(mem, arrow.BinaryTypes.String)
	defer reference.Release()
	elements := reference.ValueBuilder().(*array.StringBuilder)
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 500, 3, 0, 129, 64} {
		for range n {
			if r.IntN(4) == 0 {
				own.appendNull()
				reference.AppendNull()
				continue
			}
			reference.Append(true)
			for range r.IntN(4) * r.IntN(3) {
				if v := strings.Repeat("é", r.IntN(30)); r.IntN(5) == 0 {
					own.elements.appendNull()
					elements.AppendNull()
				} else {
					own.elements.append([]byte(v))
					elements.Append(v)
				}
			}
			own.append()
		}
		got, want := own.finish(reference.Type()).(*array.List), reference.NewListArray()
		if !array.Equal(got, want) || got.NullN() != want.NullN() || got.Len() != n {
			t.Errorf("%d lists: got\n%v\nwant\n%v", n, got, want)
		}
		if err := got.ValidateFull(); err != nil {
			t.Errorf("%d lists: %v", n, err)
		}
		got.Release()
		want.Release()
	}
	own.elements.append([]byte("left behind"))
	own.release()
	own.release()
}
