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

	declared *declared // forms that the schema declares; nil for the form of the type

	vals []value // the row's values; exactly one if the column is no list
	null bool    // the row has null here
	text []byte  // memory for values of the row that are joined

	straight bool // all values are texts that fit, see Flattener.direct

	cloaked    []byte // memory for the values of the row after the pii rule
	cloakedRow int64  // number of the row whose values cloaked holds

	builder array.Builder
	lists   *array.ListBuilder   // the same as builder, if it builds lists
	elems   array.Builder        // builds the elements of lists; same as builder if there are none
	texts   *array.StringBuilder // the same as elems, if it builds strings
	unread  string               // the first value that did not fit, see Stats.Unread
	seen    *Seen                // describes the values so far, nil if there were none
}

func newColumn(c schemas.Column, mem memory.Allocator) *column {
	col := &column{Column: c, elem: c.Type, declared: newDeclared(c.Reading)}
	if c.Type.Kind == schemas.List {
		col.list, col.elem = true, *c.Type.Elem
	}
	col.builder = array.NewBuilder(mem, c.Type.Arrow())
	col.elems = col.builder
	if col.list {
		col.lists = col.builder.(*array.ListBuilder)
		col.elems = col.lists.ValueBuilder()
	}
	col.texts, _ = col.elems.(*array.StringBuilder)
	return col
}

func (c *column) isString() bool { return c.elem.Kind == schemas.String }

// set makes v the row's only value.
func (c *column) set(v value) { c.vals, c.null = append(c.vals[:0], v), v.null }

// append writes the row's values to the builder and returns the bytes that
// they take, roughly.
func (c *column) append() int {
	if c.null {
		c.builder.AppendNull()
		return 8
	}
	if c.list {
		c.lists.Append(true)
	}
	size := 8
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
