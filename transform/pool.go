package transform

import (
	"math/bits"
	"sync"
	"time"
)

const (
	// leastPooled and mostPooled bound the sizes of memory that a Pool keeps.
	leastPooled = 1 << 10
	mostPooled  = 4 << 20
	// mostKept is how many bytes a Pool keeps at most. The batches of a run that
	// reads eight windows at once take about as much. What is kept counts as live, so
	// more would also let the heap grow further before it is collected.
	mostKept = 4 << 20
	// idle is how long a Pool keeps memory that nobody asks for, at least.
	idle = 5 * time.Second
)

// Pool allocates the memory of record batches. Memory that is freed serves
// later batches, up to a bound. A Pool that is idle for a few seconds keeps
// nothing. It may be used by several goroutines at once. The zero value is empty.
//
// Unlike Go's memory, freed memory changes: no value of a batch may be used
// after the batch was released.
type Pool struct {
	mu            sync.Mutex
	free          [classes][][]byte // freed memory by class, each slice as long as its class is large
	kept          int               // how many bytes free holds
	takes         int               // how often memory was asked for
	last          [classes]int      // for each class, takes when its memory was last asked for
	usedSinceLook bool              // memory was asked for since the last call of look
	watched       bool              // a timer will call look
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.usedSinceLook = true
	p.takes++
	p.last[at] = p.takes
	last := len(p.free[at]) - 1
	if last < 0 {
		return make([]byte, size, room)
	}
	b := p.free[at][last][:size]
	p.free[at][last] = nil
	p.free[at] = p.free[at][:last]
	p.kept -= room
	clear(b)
	return b
}

// Free takes memory back that Allocate or Reallocate gave.
func (p *Pool) Free(b []byte) {
	at, room, ok := class(cap(b))
	if !ok || room != cap(b) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.kept+room > mostKept {
		if !p.evict(at) {
			return
		}
	}
	p.free[at] = append(p.free[at], b[:room])
	p.kept += room
	if !p.watched {
		p.watched = true
		time.AfterFunc(idle, p.look)
	}
}

// evict gives up memory of the class that was asked for least recently, if that was longer ago
// than for the class at. A run that has read its windows needs other sizes than before.
func (p *Pool) evict(at int) bool {
	oldest := at
	for i, list := range p.free {
		if len(list) > 0 && p.last[i] < p.last[oldest] {
			oldest = i
		}
	}
	if oldest == at {
		return false
	}
	end := len(p.free[oldest]) - 1
	p.kept -= len(p.free[oldest][end])
	p.free[oldest][end] = nil
	p.free[oldest] = p.free[oldest][:end]
	return true
}

// look empties the pool if nobody asked for memory since the last look.
func (p *Pool) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usedSinceLook {
		p.usedSinceLook = false
		time.AfterFunc(idle, p.look)
		return
	}
	p.free, p.kept, p.watched = [classes][][]byte{}, 0, false
}
