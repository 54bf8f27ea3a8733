package parquetout

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/parquet-go/parquet-go"
)

// column turns rows of an Arrow column into the values of a Parquet column. A
// parquet.Value is a small struct that points into Arrow's memory. So no value
// is boxed and no string is copied.
type column struct {
	index   int
	present int // definition level of a scalar that is not null, or of an empty list
	scratch []parquet.Value
	bytes   int    // of the values in scratch, as Parquet stores them plain
	fixed   []byte // the bytes that FIXED_LEN_BYTE_ARRAY values in scratch point to
}

// add appends the rows [from, to) of arr to c.scratch.
func (c *column) add(arr arrow.Array, from, to int) {
	if list, ok := arr.(*array.List); ok {
		c.addList(list, from, to)
		return
	}
	get, nulls := c.getter(arr), arr.NullN() > 0
	for row := from; row < to; row++ {
		if nulls && arr.IsNull(row) {
			c.scratch = append(c.scratch, parquet.NullValue().Level(0, 0, c.index))
			continue
		}
		c.scratch = append(c.scratch, get(row).Level(0, c.present, c.index))
	}
}

// addList appends the rows [from, to) of a list column. The list has three levels: the list itself,
// which a nullable column makes optional, the repeated "list", and the optional "element".
func (c *column) addList(list *array.List, from, to int) {
	values := list.ListValues()
	get := c.getter(values)
	for row := from; row < to; row++ {
		if list.IsNull(row) {
			c.scratch = append(c.scratch, parquet.NullValue().Level(0, 0, c.index))
			continue
		}
		start, end := list.ValueOffsets(row)
		if start == end {
			c.scratch = append(c.scratch, parquet.NullValue().Level(0, c.present, c.index))
		}
		repeated := 0
		for i := int(start); i < int(end); i++ {
			v := parquet.NullValue().Level(repeated, c.present+1, c.index)
			if values.IsValid(i) {
				v = get(i).Level(repeated, c.present+2, c.index)
			}
			c.scratch = append(c.scratch, v)
			repeated = 1
		}
	}
}

// getter returns a function that makes the value of a row and adds its size to
// c.bytes. The row must not be null.
func (c *column) getter(arr arrow.Array) func(row int) parquet.Value {
	switch a := arr.(type) {
	case *array.String:
		return c.strings(a)
	case *array.Int64:
		return func(row int) parquet.Value { c.bytes += 8; return parquet.Int64Value(a.Value(row)) }
	case *array.Float64:
		return func(row int) parquet.Value { c.bytes += 8; return parquet.DoubleValue(a.Value(row)) }
	case *array.Boolean:
		return func(row int) parquet.Value { c.bytes++; return parquet.BooleanValue(a.Value(row)) }
	case *array.Date32:
		return func(row int) parquet.Value { c.bytes += 4; return parquet.Int32Value(int32(a.Value(row))) }
	case *array.Timestamp:
		return func(row int) parquet.Value { c.bytes += 8; return parquet.Int64Value(int64(a.Value(row))) }
	case *array.Decimal128:
		return c.decimals(a)
	}
	panic(fmt.Sprintf("parquet: an array of type %s passed CheckSchema", arr.DataType()))
}

func (c *column) strings(a *array.String) func(row int) parquet.Value {
	if a.Len() == 0 {
		return func(int) parquet.Value { panic("parquet: a row of an empty array") }
	}
	data, base := a.ValueBytes(), a.ValueOffset(0)
	return func(row int) parquet.Value {
		at, n := a.ValueOffset(row)-base, a.ValueLen(row)
		c.bytes += 4 + n
		return parquet.ByteArrayValue(data[at : at+n])
	}
}

func (c *column) decimals(a *array.Decimal128) func(row int) parquet.Value {
	precision := int(a.DataType().(*arrow.Decimal128Type).Precision)
	switch {
	case precision <= 9:
		return func(row int) parquet.Value { c.bytes += 4; return parquet.Int32Value(int32(a.Value(row).LowBits())) }
	case precision <= 18:
		return func(row int) parquet.Value { c.bytes += 8; return parquet.Int64Value(int64(a.Value(row).LowBits())) }
	}
	width := decimalBytes(precision)
	return func(row int) parquet.Value {
		c.bytes += width
		// When c.fixed grows and moves, earlier values still point to the old
		// bytes, which nobody overwrites.
		c.fixed = appendBigEndian(c.fixed, a.Value(row), width)
		return parquet.FixedLenByteArrayValue(c.fixed[len(c.fixed)-width:])
	}
}

// appendBigEndian appends the lowest width bytes (1 to 16) of n in two's
// complement, the highest byte first.
func appendBigEndian(dst []byte, n decimal128.Num, width int) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(n.HighBits()))
	binary.BigEndian.PutUint64(b[8:], n.LowBits())
	return append(dst, b[16-width:]...)
}
