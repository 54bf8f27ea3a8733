package transform

import (
	"sync"

	"github.com/formetl/formetl/schemas"
)

// Sizes remembers how large the columns of a form's batches became. Flatteners that share
// a Sizes reserve so much memory when they begin a batch. It may be used by several
// goroutines at once. The zero value remembers nothing.
type Sizes struct {
	mu sync.Mutex
	of map[schemas.Source]size
}

// size is how much one column of a batch holds.
type size struct {
	rows     int
	elements int // of lists
	bytes    int // of texts
}

// reserve makes room in columns whose batch begins.
func (s *Sizes) reserve(columns []*column) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range columns {
		if last := s.of[c.From]; last.rows > 0 {
			c.reserve(last)
		}
	}
}

// note remembers the sizes of columns whose batch ends. A smaller batch than before
// lowers what is remembered only little, because windows differ.
func (s *Sizes) note(columns []*column) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[schemas.Source]size, len(columns))
	}
	for _, c := range columns {
		last, now := s.of[c.From], c.size()
		s.of[c.From] = size{expected(last.rows, now.rows), expected(last.elements, now.elements), expected(last.bytes, now.bytes)}
	}
}

// expected is what to reserve after a batch that needed now, of which last was expected.
func expected(last, now int) int { return max(now+now/8, last-last/8) }
