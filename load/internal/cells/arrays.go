package cells

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Appender appends the text of element i of an array to dst. The element is not null.
type Appender func(dst []byte, i int) []byte

// Text returns the Appender of an array of scalars other than strings. It writes
// them as CSV does. timestamp appends an instant in microseconds since 1970 UTC.
func Text(arr arrow.Array, timestamp func(dst []byte, us int64) []byte) Appender {
	switch a := arr.(type) {
	case *array.Int64:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, a.Value(i), 10) }
	case *array.Float64:
		return func(dst []byte, i int) []byte { return appendAnyFloat(dst, a.Value(i)) }
	case *array.Boolean:
		return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, a.Value(i)) }
	case *array.Date32:
		return func(dst []byte, i int) []byte { return AppendDate(dst, int32(a.Value(i))) }
	case *array.Timestamp:
		return func(dst []byte, i int) []byte { return timestamp(dst, int64(a.Value(i))) }
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		return func(dst []byte, i int) []byte { return AppendDecimal(dst, a.Value(i), scale) }
	}
	panic(fmt.Sprintf("no column has the type %s", arr.DataType()))
}

// JSON returns the Appender of any array. It writes values as NDJSON does:
// lists are arrays, and days, instants and decimals are strings. Floats that
// are not finite are null. Instants have the zone's offset.
func JSON(arr arrow.Array, zone *time.Location) Appender {
	switch a := arr.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return AppendJSON(dst, a.Value(i)) }
	case *array.Float64:
		return func(dst []byte, i int) []byte {
			if f := a.Value(i); !math.IsNaN(f) && !math.IsInf(f, 0) {
				return AppendFloat(dst, f)
			}
			return append(dst, "null"...)
		}
	case *array.List:
		element := JSON(a.ListValues(), zone)
		return func(dst []byte, i int) []byte {
			return append(AppendList(append(dst, '['), a, i, ',', "null", element), ']')
		}
	}
	text := Text(arr, func(dst []byte, us int64) []byte { return AppendTimestamp(dst, us, zone) })
	switch arr.(type) {
	case *array.Date32, *array.Timestamp, *array.Decimal128:
		return func(dst []byte, i int) []byte { return append(text(append(dst, '"'), i), '"') }
	}
	return text
}

// AppendList appends the elements of the list in row i, separated by the byte between.
// It appends null for an element that is null, and others by the Appender element.
func AppendList(dst []byte, a *array.List, i int, between byte, null string, element Appender) []byte {
	values := a.ListValues()
	start, end := a.ValueOffsets(i)
	for k := int(start); k < int(end); k++ {
		if k > int(start) {
			dst = append(dst, between)
		}
		if values.IsNull(k) {
			dst = append(dst, null...)
			continue
		}
		dst = element(dst, k)
	}
	return dst
}

// appendAnyFloat appends f, which may be NaN or infinite. formetl's own columns hold only
// finite numbers. NaN and infinities are written in a form that DuckDB, PostgreSQL and strconv
// read.
func appendAnyFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	return AppendFloat(dst, f)
}
