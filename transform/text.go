package transform

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// texts builds a string array. Most values of a form are strings, and Arrow's
// own builder makes several calls for each. texts itself writes the three
// buffers of the array. That more than halves the time of a page
// (BenchmarkFlatten).
type texts struct {
	mem                  memory.Allocator
	valid, offsets, data *memory.Buffer

	bits []byte  // the memory of valid
	ends []int32 // the memory of offsets: where each value ends, after a leading 0
	text []byte  // the memory of data

	n, used, nulls    int // values, bytes of text, nulls
	lastN, lastLength int // of the last array, to reserve for the next
}

// append adds a value. It copies the value once, into the array's memory.
func (t *texts) append(v []byte) {
	if t.n+1 >= len(t.ends) {
		t.growValues()
	}
	if len(t.text)-t.used < len(v) {
		t.growText(len(v))
	}
	t.used += copy(t.text[t.used:], v)
	if t.n&7 == 0 {
		t.bits[t.n>>3] = 0
	}
	t.bits[t.n>>3] |= 1 << (t.n & 7)
	t.n++
	t.ends[t.n] = int32(t.used)
}

// appendNull adds a null.
func (t *texts) appendNull() {
	if t.n+1 >= len(t.ends) {
		t.growValues()
	}
	if t.n&7 == 0 {
		t.bits[t.n>>3] = 0
	}
	t.n++
	t.nulls++
	t.ends[t.n] = int32(t.used)
}

// growValues makes room for at least one more value. At first it makes room for
// as many values as the last array had, then for twice as many.
func (t *texts) growValues() {
	const first = 64
	if t.offsets == nil {
		t.valid, t.offsets, t.data = memory.NewResizableBuffer(t.mem), memory.NewResizableBuffer(t.mem), memory.NewResizableBuffer(t.mem)
		t.growText(t.lastLength)
	}
	room := max(first, t.lastN, 2*t.n)
	t.offsets.ResizeNoShrink(4 * (room + 1))
	t.valid.ResizeNoShrink((room + 7) / 8)
	t.ends, t.bits = arrow.Int32Traits.CastFromBytes(t.offsets.Bytes()), t.valid.Bytes()
	t.ends[0] = 0
}

// growText makes room for n more bytes of text.
func (t *texts) growText(n int) {
	const first = 512
	t.data.ResizeNoShrink(max(first, t.lastLength, 2*t.used, t.used+n))
	t.text = t.data.Bytes()
}

// finish returns the array of the values and empties t.
func (t *texts) finish() arrow.Array {
	if t.offsets == nil {
		t.growValues()
	}
	t.offsets.ResizeNoShrink(4 * (t.n + 1))
	t.valid.ResizeNoShrink((t.n + 7) / 8)
	t.data.ResizeNoShrink(t.used)
	data := array.NewData(arrow.BinaryTypes.String, t.n, []*memory.Buffer{t.valid, t.offsets, t.data}, nil, t.nulls, 0)
	defer data.Release()
	t.lastN, t.lastLength = t.n, t.used
	out := array.NewStringData(data)
	t.release()
	return out
}

// release frees the memory that no array has taken over.
func (t *texts) release() {
	if t.offsets != nil {
		t.valid.Release()
		t.offsets.Release()
		t.data.Release()
	}
	*t = texts{mem: t.mem, lastN: t.lastN, lastLength: t.lastLength}
}
