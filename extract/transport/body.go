package transport

import (
	"bytes"
	"io"
)

// mostSaid is the largest expected size in bytes for which memory is allocated
// before the body is read.
const mostSaid = 16 << 20

// readOver reads r to its end and returns the bytes. It uses the memory of text
// if they fit. size is the expected number of bytes, 0 or less if unknown. A
// body of more than most bytes gives an *AnswerError. Errors of r are returned
// unchanged.
func readOver(text []byte, r io.Reader, size, most int64) ([]byte, error) {
	body := bytes.NewBuffer(text[:0])
	if size > 0 && size <= min(mostSaid, most) {
		body.Grow(room(size))
	}
	n, err := body.ReadFrom(io.LimitReader(r, most+1))
	if n > most {
		return text[:0], TooLarge(most)
	}
	return body.Bytes(), err
}

// room returns the size of a buffer for n bytes. A slightly longer next body fits too, and
// the end of a body is found without growing.
func room(n int64) int { return int(n+n/16) + bytes.MinRead }
