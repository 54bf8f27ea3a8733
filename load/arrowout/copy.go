package arrowout

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// copier appends the elements [from, to) of an array to a builder.
type copier func(arr arrow.Array, from, to int)

// copierOf returns a copier that appends to b and adds the size of what it copies to e.bytes.
func (e *encoder) copierOf(b array.Builder) copier {
	switch b := b.(type) {
	case *array.StringBuilder:
		return func(arr arrow.Array, from, to int) {
			a := arr.(*array.String)
			for i := from; i < to; i++ {
				if a.IsNull(i) {
					b.AppendNull()
					continue
				}
				b.Append(a.Value(i))
				e.bytes += a.ValueLen(i)
			}
		}
	case *array.Int64Builder:
		return fixed[int64, *array.Int64](e, b, 8)
	case *array.Float64Builder:
		return fixed[float64, *array.Float64](e, b, 8)
	case *array.BooleanBuilder:
		return fixed[bool, *array.Boolean](e, b, 1)
	case *array.Date32Builder:
		return fixed[arrow.Date32, *array.Date32](e, b, 4)
	case *array.TimestampBuilder:
		return fixed[arrow.Timestamp, *array.Timestamp](e, b, 8)
	case *array.Decimal128Builder:
		return fixed[decimal128.Num, *array.Decimal128](e, b, 16)
	case *array.ListBuilder:
		return e.list(b)
	}
	panic(fmt.Sprintf("arrow: no column has the type %s", b.Type()))
}

// values is an array of values of a fixed width.
type values[T any] interface {
	IsNull(i int) bool
	Value(i int) T
}

// builder builds an array of values of a fixed width.
type builder[T any] interface {
	Append(v T)
	AppendNull()
}

// fixed returns a copier for values of width bytes each.
func fixed[T any, A values[T]](e *encoder, b builder[T], width int) copier {
	return func(arr arrow.Array, from, to int) {
		a := any(arr).(A)
		for i := from; i < to; i++ {
			if a.IsNull(i) {
				b.AppendNull()
				continue
			}
			b.Append(a.Value(i))
		}
		e.bytes += width * (to - from)
	}
}

func (e *encoder) list(b *array.ListBuilder) copier {
	elements := e.copierOf(b.ValueBuilder())
	return func(arr arrow.Array, from, to int) {
		a := arr.(*array.List)
		e.bytes += 4 * (to - from)
		for i := from; i < to; i++ {
			if a.IsNull(i) {
				b.AppendNull()
				continue
			}
			b.Append(true)
			start, end := a.ValueOffsets(i)
			elements(a.ListValues(), int(start), int(end))
		}
	}
}
