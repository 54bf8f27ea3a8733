package transform

import (
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/schemas"
)

// value is a parsed value. A string is in text. Other types are in num: the bits of a
// float64, a bool as 0 or 1, days, or microseconds. A decimal has its high half in
// num and its low half in low.
type value struct {
	text []byte
	num  int64
	low  uint64
	null bool
}

// column fills one column of a batch. The values of the current row stay in vals
// until it is certain that the row is written.
type column struct {
	schemas.Column
	elem schemas.Type // the column's type, or that of a list's elements
	list bool

	declared *declared // forms that the schema declares; nil for the form of the type

	vals []value // the row's values; exactly one if the column is no list
	null bool    // the row has null here
	text []byte  // memory for values of the row that are joined

	straight bool // all values are texts that fit, see Flattener.direct

	cloaked    []byte // memory for the values of the row after the pii rule
	cloakedRow int64  // number of the row whose values cloaked holds

	plain   *texts             // the builder of a string column
	several *textLists         // the builder of a column of lists of strings
	builder array.Builder      // the builder of any other column
	lists   *array.ListBuilder // the same as builder, if it builds lists
	elems   array.Builder      // builds the elements of lists; same as builder if there are none
	unread  string             // the first value that did not fit, see Stats.Unread
	seen    *Seen              // describes the values so far, nil if there were none
}

func newColumn(c schemas.Column, mem memory.Allocator) *column {
	col := &column{Column: c, elem: c.Type, declared: newDeclared(c.Reading)}
	if c.Type.Kind == schemas.String {
		col.plain = &texts{bounds: bounds{mem: Unclean(mem)}}
		return col
	}
	if c.Type.Kind == schemas.List {
		col.list, col.elem = true, *c.Type.Elem
	}
	if col.isString() {
		col.several = newTextLists(Unclean(mem))
		return col
	}
	col.builder = array.NewBuilder(mem, c.Type.Arrow())
	col.elems = col.builder
	if col.list {
		col.lists = col.builder.(*array.ListBuilder)
		col.elems = col.lists.ValueBuilder()
	}
	return col
}

func (c *column) isString() bool { return c.elem.Kind == schemas.String }

// set makes v the row's only value.
func (c *column) set(v value) { c.vals, c.null = append(c.vals[:0], v), v.null }

// append writes the row's values to the builder and returns the bytes that
// they take, roughly.
func (c *column) append() int {
	size := 8
	switch {
	case c.plain != nil && c.null:
		c.plain.appendNull()
		return 4
	case c.plain != nil:
		c.plain.append(c.vals[0].text)
		return 4 + len(c.vals[0].text)
	case c.several != nil && c.null:
		c.several.appendNull()
		return size
	case c.several != nil:
		for i := range c.vals {
			size += c.appendElement(&c.vals[i])
		}
		c.several.append()
		return size
	case c.null:
		c.builder.AppendNull()
		return size
	case c.list:
		c.lists.Append(true)
	}
	for i := range c.vals {
		size += 8
		c.appendValue(&c.vals[i])
	}
	return size
}

// appendElement adds an element to the open list of strings, and returns its size in bytes.
func (c *column) appendElement(v *value) int {
	if v.null {
		c.several.elements.appendNull()
	} else {
		c.several.elements.append(v.text)
	}
	return 8 + len(v.text)
}

func (c *column) appendValue(v *value) {
	if v.null {
		c.elems.AppendNull() // null inside a list: a scalar's null is c.null
		return
	}
	switch b := c.elems.(type) {
	case *array.Int64Builder:
		b.Append(v.num)
	case *array.Float64Builder:
		b.Append(math.Float64frombits(uint64(v.num)))
	case *array.BooleanBuilder:
		b.Append(v.num != 0)
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.num))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.num))
	case *array.Decimal128Builder:
		b.Append(decimal128.New(v.num, v.low))
	}
}

// reserve makes room in the column for a batch of the given size.
func (c *column) reserve(s size) {
	switch {
	case c.plain != nil:
		c.plain.reserve(s.rows, s.bytes)
	case c.several != nil:
		c.several.grow(s.rows)
		c.several.elements.reserve(s.elements, s.bytes)
	default:
		c.builder.Reserve(s.rows)
	}
}

// size returns how much the current batch holds of the column.
func (c *column) size() size {
	switch {
	case c.plain != nil:
		return size{rows: c.plain.n, bytes: c.plain.used}
	case c.several != nil:
		return size{rows: c.several.n, elements: c.several.elements.n, bytes: c.several.elements.used}
	}
	return size{rows: c.builder.Len()}
}

// finish returns the column's array and empties the builder.
func (c *column) finish() arrow.Array {
	switch {
	case c.plain != nil:
		return c.plain.finish()
	case c.several != nil:
		return c.several.finish(c.Type.Arrow())
	}
	return c.builder.NewArray()
}

// release frees the memory that the column's builder holds.
func (c *column) release() {
	switch {
	case c.plain != nil:
		c.plain.release()
	case c.several != nil:
		c.several.release()
	default:
		c.builder.Release()
	}
}

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
	elements int // number of elements in lists
	bytes    int // bytes of texts
}

// reserve makes room in columns whose batch begins, for as much as earlier batches held.
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

// expected returns what to reserve for the next batch, after a batch that needed now where
// last was reserved.
func expected(last, now int) int { return max(now+now/8, last-last/8) }
