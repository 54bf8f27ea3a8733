package transform

import (
	"math/bits"
	"sync"
)

// leastPooled and mostPooled bound the sizes of memory that a Pool keeps.
const (
	leastPooled = 1 << 10
	mostPooled  = 4 << 20
)

// Pool allocates the memory of record batches. Memory that is freed serves later batches,
// until the garbage collector takes it. It may be used by several goroutines at once. The zero
// value is empty.
//
// Unlike Go's memory, freed memory changes: no value of a batch may be used
// after the batch was released.
type Pool struct {
	free [classes]sync.Pool // of *[]byte, as long as the class is large
}

// classes is the number of sizes of pooled memory. Between a power of two and
// the next there are four, so at most a fifth of the memory is not used.
const classes = 49

// class returns the index of the first class whose memory has at least size bytes, and how
// many bytes that memory has. ok is false for sizes that are not pooled.
func class(size int) (at, room int, ok bool) {
	if size < leastPooled || size > mostPooled {
		return 0, 0, false
	}
	doubled := bits.Len(uint(size - 1)) // 1<<doubled is at least size, and less than twice size
	step := 1 << (doubled - 3)
	n := (size + step - 1) / step // 5 to 8 steps, each an eighth of 1<<doubled
	return 4*(doubled-10) + n - 8, n * step, true
}

// Allocate returns size bytes, all zero.
func (p *Pool) Allocate(size int) []byte {
	at, room, ok := class(size)
	if !ok {
		return make([]byte, size)
	}
	if freed, ok := p.free[at].Get().(*[]byte); ok {
		clear((*freed)[:size])
		return (*freed)[:size]
	}
	return make([]byte, size, room)
}

// Reallocate returns the bytes of b in a slice of the given size, and frees b.
// What is longer than b is zero.
func (p *Pool) Reallocate(size int, b []byte) []byte {
	if size > cap(b) {
		grown := p.Allocate(size)
		copy(grown, b)
		p.Free(b)
		return grown
	}
	old := min(len(b), size)
	clear(b[old:size])
	return b[:size]
}

// Free takes memory back that Allocate or Reallocate gave.
func (p *Pool) Free(b []byte) {
	if at, room, ok := class(cap(b)); ok && room == cap(b) {
		b = b[:room]
		p.free[at].Put(&b)
	}
}
