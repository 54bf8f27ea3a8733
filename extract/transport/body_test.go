package transport

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const chunkBytes = 256 << 10

// TestReadOver reads bodies around the sizes at which the memory changes, over
// memory of several sizes and with true, false and missing statements.
func TestReadOver(t *testing.T) {
	whole := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz."), 2*chunkBytes/37+10)
	for _, size := range []int{0, 1, 511, 512, 513, chunkBytes - 1, chunkBytes, chunkBytes + 1, chunkBytes + 512, 2*chunkBytes + 7} {
		for _, room := range []int{0, 512, chunkBytes} {
			for _, said := range []int64{-1, 0, int64(size), 100, int64(size) + 1000, 1 << 40} {
				for _, r := range []io.Reader{
					bytes.NewReader(whole[:size]), iotest.HalfReader(bytes.NewReader(whole[:size])), iotest.DataErrReader(bytes.NewReader(whole[:size])),
				} {
					got, err := readOver(make([]byte, 0, room), r, said, 64<<20)
					if err != nil || !bytes.Equal(got, whole[:size]) {
						t.Fatalf("%d bytes over %d, said to be %d: %d bytes, %v", size, room, said, len(got), err)
					}
					if most := max(int64(room), min(max(said, 0), mostSaid)*17/16, 2*int64(size)); int64(cap(got)) > most+most/8+8192 {
						t.Errorf("%d bytes over %d, said to be %d: memory of %d", size, room, said, cap(got))
					}
				}
			}
		}
	}
}

func TestReadOverBound(t *testing.T) {
	const bound = chunkBytes + 100
	for _, room := range []int{0, 50, 4 * chunkBytes} {
		for size, fits := range map[int]bool{chunkBytes + 100: true, chunkBytes + 101: false, 3 * chunkBytes: false} {
			_, err := readOver(make([]byte, 0, room), strings.NewReader(strings.Repeat("x", size)), -1, bound)
			if _, refused := errors.AsType[*AnswerError](err); refused == fits || fits && err != nil {
				t.Errorf("%d bytes over %d: %v", size, room, err)
			}
		}
		broken := io.MultiReader(strings.NewReader(strings.Repeat("x", chunkBytes)), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := readOver(make([]byte, 0, room), broken, -1, bound); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a cut body over %d: %v", room, err)
		}
	}
}

// A body in a page's memory of the right size is not copied, nor is more taken.
func TestReadOverAllocatesOnce(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 3*chunkBytes)
	text := make([]byte, 0, room(int64(len(body))))
	if n := testing.AllocsPerRun(10, func() {
		got, err := readOver(text, bytes.NewReader(body), -1, 64<<20)
		if err != nil || &got[0] != &text[:1][0] {
			t.Fatal("it moved", err)
		}
	}); n > 3 { // the readers and the buffer
		t.Errorf("%v allocations", n)
	}
}
