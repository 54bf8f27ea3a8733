package transform

import (
	"math/bits"
	"sync"
)

const (
	// leastPooled and mostPooled bound the sizes of memory that a Pool keeps.
	leastPooled = 1 << 10
	mostPooled  = 4 << 20
	// mostKept is how many bytes a Pool keeps at most. The batches of a run that
	// reads eight windows at once take about as much. What is kept counts as live, so
	// more would also let the heap grow further before it is collected.
	mostKept = 4 << 20
)

// Pool allocates the memory of record batches. Memory that is freed serves later batches, up to
// a bound. It may be used by several goroutines at once. The zero value is empty.
//
// Unlike Go's memory, freed memory changes: no value of a batch may be used
// after the batch was released.
type Pool struct {
	mu   sync.Mutex
	free [classes][][]byte // freed memory by class, each slice as long as its class is large
	kept int               // how many bytes free holds
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

// Reallocate returns the bytes of b in a slice of the given size, and frees b.
// What is longer than b is zero.
func (p *Pool) Reallocate(size int, b []byte) []byte {
	if size > cap(b) {
		longer := p.Allocate(size)
		copy(longer, b)
		p.Free(b)
		return longer
	}
	old := min(len(b), size)
	b = b[:size]
	clear(b[old:])
	return b
}

// Allocate returns size bytes, all zero.
func (p *Pool) Allocate(size int) []byte {
	at, room, ok := class(size)
	if !ok {
		return make([]byte, size)
	}
	b := p.take(at, room)
	if b == nil {
		return make([]byte, size, room)
	}
	b = b[:size]
	clear(b) // not while others wait for the lock
	return b
}

// take returns freed memory of a class, nil if there is none.
func (p *Pool) take(at, room int) (b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free[at]) - 1; last >= 0 {
		b, p.free[at][last] = p.free[at][last], nil
		p.free[at] = p.free[at][:last]
		p.kept -= room
	}
	return b
}

// Free takes memory back that Allocate or Reallocate gave. A Pool that is full gives up all that
// it keeps, because a run that has read its windows needs other sizes than before.
func (p *Pool) Free(b []byte) {
	at, room, ok := class(cap(b))
	if !ok || room != cap(b) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept+room > mostKept {
		p.free, p.kept = [classes][][]byte{}, 0
	}
	p.free[at] = append(p.free[at], b[:room])
	p.kept += room
}
