package transform

import (
	"math"

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

	declared *declared // nil if values are in the form that the type expects

	vals []value // the row's values; exactly one if the column is no list
	null bool    // the row has null here
	text []byte  // memory for joined values

	cloaked    []byte // memory for the values of the row after the pii rule
	cloakedRow int64  // number of that row

	plain     *texts             // the builder of a string column
	builder   array.Builder      // the builder of any other column
	lists     *array.ListBuilder // the builder of a list
	elems     array.Builder      // builder, or the builder of a list's elements
	seen      *Seen              // describes the values so far, nil if there were none
	lastBytes int                // text bytes of the last batch, to reserve for the next
}

func newColumn(c schemas.Column, mem memory.Allocator) *column {
	col := &column{Column: c, elem: c.Type, declared: newDeclared(c.Reading)}
	if c.Type.Kind == schemas.String {
		col.plain = &texts{mem: mem}
		return col
	}
	col.builder = array.NewBuilder(mem, c.Type.Arrow())
	col.elems = col.builder
	if c.Type.Kind == schemas.List {
		col.list, col.elem = true, *c.Type.Elem
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
	case c.null:
		c.builder.AppendNull()
		return 8
	case c.list:
		c.lists.Append(true)
	}
	for i := range c.vals {
		size += 8 + len(c.vals[i].text)
		c.appendValue(&c.vals[i])
	}
	return size
}

func (c *column) appendValue(v *value) {
	if v.null {
		c.elems.AppendNull() // null inside a list: a scalar's null is c.null
		return
	}
	switch b := c.elems.(type) {
	case *array.StringBuilder:
		b.BinaryBuilder.Append(v.text)
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

// reserve allocates memory for as many rows and bytes as the last batch had.
func (c *column) reserve(rows int) {
	if rows == 0 || c.plain != nil {
		return
	}
	c.builder.Reserve(rows)
	if texts, ok := c.elems.(*array.StringBuilder); ok && c.lastBytes > 0 {
		texts.ReserveData(c.lastBytes)
	}
}

// finish returns the column's array and empties the builder.
func (c *column) finish() arrow.Array {
	if c.plain != nil {
		return c.plain.finish()
	}
	if texts, ok := c.elems.(*array.StringBuilder); ok {
		c.lastBytes = texts.DataLen()
	}
	return c.builder.NewArray()
}

// release frees what the column holds.
func (c *column) release() {
	if c.plain != nil {
		c.plain.release()
		return
	}
	c.builder.Release()
}
