package transport

import (
	"errors"
	"io"
	"sync"
)

// If a body outgrows its buffer, the rest is read in chunks. At the end, all is
// copied into one buffer of the right size. To grow a buffer step by step took
// most of a run's memory with answers of 9 MB.
const chunkBytes = 256 << 10

type chunk [chunkBytes]byte

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// room returns the size of a buffer for n bytes. A slightly longer next body
// fits too, and one spare byte shows the end of the body without a chunk.
func room(n int64) int64 { return n + n/16 + 1 }

// mostSaid is the largest expected size in bytes for which memory is allocated
// before the body is read.
const mostSaid = 16 << 20

// readOver reads r to its end and returns the bytes. It uses the memory of text
// if they fit. size is the expected number of bytes, 0 or less if unknown. A
// body of more than most bytes gives an *AnswerError. Errors of r are returned
// unchanged.
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
