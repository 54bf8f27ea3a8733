package transform_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/transform"
)

var _ memory.Allocator = (*transform.Pool)(nil)

// address tells memory apart: equal addresses are the same memory.
func address(b []byte) *byte { return &b[:1][0] }

func isZero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }

func TestPoolGivesMemoryAgain(t *testing.T) {
	p := &transform.Pool{}
	for _, size := range []int{1 << 10, 1<<10 + 1, 5000, 64 << 10, 1<<20 - 64, 4 << 20} {
		b := p.Allocate(size)
		if len(b) != size || cap(b) > size+size/4 {
			t.Errorf("%d bytes for %d are room for %d", len(b), size, cap(b))
		}
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 1
		}
		p.Free(b)
		again := p.Allocate(size)
		if address(again) != address(b) {
			t.Errorf("%d bytes that were freed are not used again", size)
		}
		if !isZero(again) {
			t.Errorf("%d bytes hold old values", size)
		}
		if other := p.Allocate(size); address(other) == address(again) {
			t.Errorf("%d bytes are given twice", size)
		}
	}
}

func TestPoolReallocates(t *testing.T) {
	p := &transform.Pool{}
	old := p.Allocate(5000)
	for i := range old {
		old[i] = 7
	}
	p.Free(old)
	b := p.Allocate(2000)
	b = p.Reallocate(100, b)
	b[99] = 9
	b = p.Reallocate(2000, b) // the same memory
	b = p.Reallocate(5000, b) // the memory of old
	if len(b) != 5000 || b[99] != 9 || !isZero(b[:99]) || !isZero(b[100:]) {
		t.Error("the bytes are not those from before and zeros")
	}
	for _, size := range []int{0, 100, 5 << 20} {
		if b := p.Reallocate(size, p.Allocate(size/2)); len(b) != size || !isZero(b) {
			t.Errorf("%d bytes of %d", len(b), size)
		}
	}
}

// Memory that a Pool did not give is not taken.
func TestPoolRefusesOthers(t *testing.T) {
	p := &transform.Pool{}
	foreign := make([]byte, 3000)
	p.Free(foreign)
	p.Free(nil)
	if b := p.Allocate(2900); address(b) == address(foreign) {
		t.Error("memory of another size is given")
	}
}

// A Pool keeps a bounded number of bytes.
func TestPoolKeepsLittle(t *testing.T) {
	p := &transform.Pool{}
	given := make([][]byte, 0, 30)
	was := map[*byte]bool{}
	for range cap(given) {
		b := p.Allocate(1 << 20)
		given = append(given, b)
		was[address(b)] = true
	}
	for _, b := range given {
		p.Free(b)
	}
	kept := 0
	for range given {
		if b := p.Allocate(1 << 20); was[address(b)] {
			kept++
		}
	}
	if kept == 0 || kept > 4 {
		t.Errorf("%d MB are kept", kept)
	}
}

// A full Pool gives up the sizes that nobody asks for any more.
func TestPoolKeepsWhatIsAskedFor(t *testing.T) {
	p := &transform.Pool{}
	small := make([][]byte, 0, 64)
	for range 64 {
		small = append(small, p.Allocate(64<<10))
	}
	for _, b := range small {
		p.Free(b)
	}
	first := p.Allocate(3 << 20)
	p.Free(first)
	if second := p.Allocate(3 << 20); address(second) != address(first) {
		t.Error("old memory of another size stays in place of what is needed")
	}
}
