package xlsxout

import (
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
	"github.com/formetl/formetl/load/internal/lists"
)

// list gives the value of a column of a list: a text, or a boolean that tells
// whether the list holds the column's choice.
func (c column) list(e *encoder, a *array.List) value {
	elements := a.ListValues()
	if c.listAs == lists.Columns {
		texts := elements.(*array.String)
		return func(row int) (any, error) {
			start, end := a.ValueOffsets(row)
			for i := int(start); i < int(end); i++ {
				if !texts.IsNull(i) && texts.Value(i) == c.choice {
					return true, nil
				}
			}
			return false, nil
		}
	}
	open, between, end, null := "", "|", "", `\N`
	element := e.joined(elements)
	if c.listAs == lists.JSON {
		open, between, end, null = "[", ",", "]", "null"
		element = e.json(elements)
	}
	var scratch []byte
	return func(row int) (any, error) {
		from, to := a.ValueOffsets(row)
		scratch = append(scratch[:0], open...)
		for i := from; i < to; i++ {
			if i > from {
				scratch = append(scratch, between...)
			}
			if elements.IsNull(int(i)) {
				scratch = append(scratch, null...)
				continue
			}
			scratch = element(scratch, int(i))
		}
		return textCell(string(append(scratch, end...)))
	}
}

// appender appends an element of a list. The element is not null.
type appender func(dst []byte, i int) []byte

// joined appends elements as CSV's profile excel does.
func (e *encoder) joined(arr arrow.Array) appender {
	switch a := arr.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return lists.AppendJoined(dst, a.Value(i)) }
	case *array.Int64:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, a.Value(i), 10) }
	case *array.Float64:
		return func(dst []byte, i int) []byte {
			if text, ok := floatCell(a.Value(i)).(string); ok {
				return append(dst, text...)
			}
			return cells.AppendFloat(dst, a.Value(i))
		}
	case *array.Boolean:
		return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, a.Value(i)) }
	case *array.Date32:
		return func(dst []byte, i int) []byte { return cells.AppendDate(dst, int32(a.Value(i))) }
	case *array.Timestamp:
		return func(dst []byte, i int) []byte { return cells.AppendLocal(dst, int64(a.Value(i)), e.zone) }
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		return func(dst []byte, i int) []byte { return cells.AppendDecimal(dst, a.Value(i), scale) }
	}
	panic(fmt.Sprintf("xlsx: a list of %s passed CheckSchema", arr.DataType()))
}

// json appends elements as NDJSON does.
func (e *encoder) json(arr arrow.Array) appender {
	plain := e.joined(arr)
	quoted := func(dst []byte, i int) []byte { return append(plain(append(dst, '"'), i), '"') }
	switch a := arr.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return cells.AppendJSON(dst, a.Value(i)) }
	case *array.Float64:
		return func(dst []byte, i int) []byte {
			if f := a.Value(i); math.IsNaN(f) || math.IsInf(f, 0) {
				return append(dst, "null"...)
			}
			return plain(dst, i)
		}
	case *array.Timestamp:
		return func(dst []byte, i int) []byte {
			return append(cells.AppendTimestamp(append(dst, '"'), int64(a.Value(i)), e.zone), '"')
		}
	case *array.Date32, *array.Decimal128:
		return quoted
	}
	return plain
}
