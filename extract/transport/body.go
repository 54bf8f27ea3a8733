package transport

import (
	"errors"
	"io"
	"sync"
)

// A body that outgrows the memory at hand goes on in chunks, and moves into
// memory of its size when it has ended. Growing step by step would copy the
// body each time, which took most of a run's memory with answers of 9 MB.
const chunkBytes = 256 << 10

type chunk [chunkBytes]byte

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// room is how much memory a body of n bytes is given. The next body is seldom
// much longer, and one byte more shows the end without a chunk.
func room(n int64) int64 { return n + n/16 + 1 }

// mostSaid is the largest size in bytes for which memory is taken before the
// body has come.
const mostSaid = 16 << 20

// readOver reads r to its end over the memory of text, or into larger memory.
// size is what the body is said to measure, 0 or less where nobody says. A body
// of more than most bytes is an *AnswerError. Errors of r are returned as they
// are.
func readOver(text []byte, r io.Reader, size, most int64) ([]byte, error) {
	if size > int64(cap(text)) && size <= min(mostSaid, most) {
		text = make([]byte, 0, room(size))
	}
	n, err := fill(text[:cap(text)], r)
	text = text[:n]
	total := int64(n)
	var chunks [][]byte
	defer func() {
		for _, c := range chunks {
			chunkPool.Put((*chunk)(c[:chunkBytes]))
		}
	}()
	for err == nil && total <= most {
		c := chunkPool.Get().(*chunk)
		n, err = fill(c[:], r)
		chunks = append(chunks, c[:n])
		total += int64(n)
	}
	switch {
	case total > most:
		return text[:0], TooLarge(most)
	case !errors.Is(err, io.EOF):
		return text, err
	case len(chunks) == 0:
		return text, nil
	}
	whole := append(make([]byte, 0, room(total)), text...)
	for _, c := range chunks {
		whole = append(whole, c...)
	}
	return whole, nil
}

// fill reads until b is full, or r ends or fails.
func fill(b []byte, r io.Reader) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}
