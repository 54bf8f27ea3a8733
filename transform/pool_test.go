package transform_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/transform"
)

var _ memory.Allocator = (*transform.Pool)(nil)

// Memory of a Pool is zero at first, although what is freed is used again, and keeps its values
// when it grows and shrinks.
func TestPool(t *testing.T) {
	isZero := func(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
	p := &transform.Pool{}
	for _, size := range []int{0, 1, 1000, 1 << 10, 1<<10 + 1, 1<<22 - 64, 1 << 22, 5 << 20} {
		for range 2 {
			b, other := p.Allocate(size), p.Allocate(size)
			if len(b) != size || !isZero(b) || !isZero(other) {
				t.Errorf("%d bytes for %d, or old values", len(b), size)
			}
			for i := range b[:cap(b)] {
				b[:cap(b)][i] = 7
			}
			if !isZero(other) {
				t.Errorf("%d bytes are given twice", size)
			}
			half := size / 2
			b = p.Reallocate(2*size, p.Reallocate(half, b))
			if len(b) != 2*size || !isZero(b[half:]) || slices.ContainsFunc(b[:half], func(c byte) bool { return c != 7 }) {
				t.Errorf("%d bytes are not those from before and zeros", size)
			}
			p.Free(b)
			p.Free(other)
		}
	}
	p.Free(make([]byte, 3000)) // memory of others
	if b := p.Allocate(3500); len(b) != 3500 {
		t.Errorf("%d bytes for 3500", len(b))
	}
}
