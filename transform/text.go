package transform

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// bounds builds the two buffers that arrays of strings and of lists have in common:
// which values are null, and where each value ends. Arrow's own builders make several
// calls for each value. Writing the buffers here more than halves the time of a page
// (BenchmarkFlatten).
type bounds struct {
	mem            memory.Allocator
	valid, offsets *memory.Buffer // nil before the first value

	bits []byte  // the memory of valid, with no bit set from the n-th on
	ends []int32 // the memory of offsets: where each value ends, after a leading 0

	n, nulls int // values, nulls among them
	lastN    int // values of the last array, to reserve for the next
}

// add adds a value that ends there.
func (b *bounds) add(end int) {
	if b.n+1 >= len(b.ends) {
		b.grow()
	}
	b.bits[b.n>>3] |= 1 << (b.n & 7)
	b.n++
	b.ends[b.n] = int32(end)
}

// addNull adds a null that ends there.
func (b *bounds) addNull(end int) {
	if b.n+1 >= len(b.ends) {
		b.grow()
	}
	b.n++
	b.nulls++
	b.ends[b.n] = int32(end)
}

// grow makes room for at least one more value. At first it makes room for as many
// values as the last array had, then for twice as many.
func (b *bounds) grow() {
	const first = 64
	if b.offsets == nil {
		b.valid, b.offsets = memory.NewResizableBuffer(b.mem), memory.NewResizableBuffer(b.mem)
	}
	room := max(first, b.lastN, 2*b.n)
	b.offsets.ResizeNoShrink(4 * (room + 1))
	b.valid.ResizeNoShrink((room + 7) / 8)
	used := len(b.bits)
	b.ends, b.bits = arrow.Int32Traits.CastFromBytes(b.offsets.Bytes()), b.valid.Bytes()
	b.ends[0] = 0
	clear(b.bits[used:])
}

// array returns the data of an array of that type, which has these buffers and the
// given ones. Then it forgets all values.
func (b *bounds) array(t arrow.DataType, more []*memory.Buffer, children []arrow.ArrayData) arrow.ArrayData {
	if b.offsets == nil {
		b.grow()
	}
	b.offsets.ResizeNoShrink(4 * (b.n + 1))
	b.valid.ResizeNoShrink((b.n + 7) / 8)
	data := array.NewData(t, b.n, append([]*memory.Buffer{b.valid, b.offsets}, more...), children, b.nulls, 0)
	b.lastN = b.n
	b.release()
	return data
}

// release frees the memory that no array has taken over, and forgets all values.
func (b *bounds) release() {
	if b.offsets != nil {
		b.valid.Release()
		b.offsets.Release()
	}
	*b = bounds{mem: b.mem, lastN: b.lastN}
}

// texts builds a string array. Most values of a form are strings.
type texts struct {
	bounds
	data       *memory.Buffer // nil before the first value
	text       []byte         // the memory of data
	used       int            // bytes of text
	lastLength int            // bytes of the last array, to reserve for the next
}

// append adds a value. It copies the value once, into the array's memory.
func (t *texts) append(v []byte) {
	if len(t.text)-t.used < len(v) {
		t.grow(len(v))
	}
	t.used += copy(t.text[t.used:], v)
	t.add(t.used)
}

// appendNull adds a null.
func (t *texts) appendNull() { t.addNull(t.used) }

// grow makes room for n more bytes of text.
func (t *texts) grow(n int) {
	const first = 512
	if t.data == nil {
		t.data = memory.NewResizableBuffer(t.mem)
	}
	t.data.ResizeNoShrink(max(first, t.lastLength, 2*t.used, t.used+n))
	t.text = t.data.Bytes()
}

// finish returns the array of the values and empties t.
func (t *texts) finish() arrow.Array {
	if t.data == nil {
		t.grow(0)
	}
	t.data.ResizeNoShrink(t.used)
	t.lastLength = t.used
	data := t.array(arrow.BinaryTypes.String, []*memory.Buffer{t.data}, nil)
	defer data.Release()
	out := array.NewStringData(data)
	t.release()
	return out
}

// release frees the memory that no array has taken over, and forgets all values.
func (t *texts) release() {
	if t.data != nil {
		t.data.Release()
	}
	t.bounds.release()
	*t = texts{bounds: t.bounds, lastLength: t.lastLength}
}

// textLists builds an array of lists of strings: the elements are appended first, then
// the list that they make up.
type textLists struct {
	bounds
	elements texts
}

func newTextLists(mem memory.Allocator) *textLists {
	return &textLists{bounds: bounds{mem: mem}, elements: texts{bounds: bounds{mem: mem}}}
}

// append adds the list of the elements that were appended since the list before.
func (l *textLists) append() { l.add(l.elements.n) }

// appendNull adds a null. No element may have been appended for it.
func (l *textLists) appendNull() { l.addNull(l.elements.n) }

// finish returns the array of the lists and empties l.
func (l *textLists) finish(t arrow.DataType) arrow.Array {
	elements := l.elements.finish()
	defer elements.Release()
	data := l.array(t, nil, []arrow.ArrayData{elements.Data()})
	defer data.Release()
	return array.NewListData(data)
}

// release frees the memory that no array has taken over, and forgets all lists.
func (l *textLists) release() {
	l.elements.release()
	l.bounds.release()
}
