package transport

import (
	"errors"
	"io"
	"sync"
)

// A body that outgrows the memory at hand goes on in chunks, and moves into
// memory of its size when it has ended. Growing step by step would copy the
// body at every step, and leave all steps to the garbage collector. With answers
// of 9 MB that was most of a run's memory.
const chunkBytes = 256 << 10

type chunk [chunkBytes]byte

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// room is how much memory a body of n bytes is given: the next answer is
// seldom much longer, and one byte more shows the end without a chunk.
func room(n int64) int64 { return n + n/16 + 1 }

// mostSaid is the largest size that a header is believed before the body came.
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
	var chunks []*chunk
	defer func() {
		for _, c := range chunks {
			chunkPool.Put(c)
		}
	}()
	last := 0 // bytes of the last chunk
	for err == nil && total <= most {
		c := chunkPool.Get().(*chunk)
		chunks = append(chunks, c)
		last, err = fill(c[:], r)
		total += int64(last)
	}
	switch {
	case total > most:
		return text[:0], TooLarge(most)
	case !errors.Is(err, io.EOF):
		return text, err
	case total == int64(n):
		return text, nil
	}
	whole := append(make([]byte, 0, room(total)), text...)
	for _, c := range chunks[:len(chunks)-1] {
		whole = append(whole, c[:]...)
	}
	return append(whole, chunks[len(chunks)-1][:last]...), nil
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
