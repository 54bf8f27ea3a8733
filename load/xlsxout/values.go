package xlsxout

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
	"github.com/formetl/formetl/load/internal/lists"
	"github.com/formetl/formetl/load/internal/sheets"
)

const (
	maxDigits  = sheets.MaxDigits
	maxInteger = 999_999_999_999_999
	// A spreadsheet cannot hold floats beyond these bounds, except 0.
	leastFloat, mostFloat = 2.3e-308, 9.99e307
	// All spreadsheets number the days from firstDay to lastDay in the same
	// way. Both count the days since 1970-01-01.
	firstDay, lastDay = -25_508, 2_932_896
	dayMicros         = 86_400_000_000
)

// value returns the cell of a row as a value for excelize, or nil for no cell.
type value func(row int) (any, error)

// values returns, for each column in order, a function that makes the cells of a batch.
func (e *encoder) values(batch arrow.RecordBatch) ([]value, error) {
	list := make([]value, 0, len(e.columns))
	for i, arr := range batch.Columns() {
		f := e.fields[i]
		a, isList := arr.(*array.List)
		switch {
		case !isList:
			list = append(list, optional(arr, e.scalar(arr)))
		case f.As == lists.Columns:
			chosen, missing := f.Chosen(a)
			if missing != nil {
				return nil, fmt.Errorf("xlsx: column %q: no choice covers a value of row %d of a batch: this is a bug in formetl",
					e.schema.Field(i).Name, missing.Row)
			}
			for n := range f.Headings {
				list = append(list, optional(arr, func(row int) (any, error) {
					return slices.Contains(chosen(row), n), nil
				}))
			}
		default:
			text := f.Text(a, e.zone, func(dst []byte, us int64) []byte { return cells.AppendLocal(dst, us, e.zone) })
			var scratch []byte
			list = append(list, optional(arr, func(row int) (any, error) {
				scratch = text(scratch[:0], row)
				return textCell(string(scratch))
			}))
		}
	}
	return list, nil
}

// optional returns v, but with no cell in the rows where arr is null.
func optional(arr arrow.Array, v value) value {
	if arr.NullN() == 0 {
		return v
	}
	return func(row int) (any, error) {
		if arr.IsNull(row) {
			return nil, nil //nolint:nilnil // no cell
		}
		return v(row)
	}
}

// scalar returns a function that makes the cells of an array of scalars.
// load.CheckSchema has refused all types but these.
func (e *encoder) scalar(arr arrow.Array) value {
	switch a := arr.(type) {
	case *array.String:
		return func(row int) (any, error) { return textCell(a.Value(row)) }
	case *array.Int64:
		return func(row int) (any, error) { return integerCell(a.Value(row)), nil }
	case *array.Float64:
		return func(row int) (any, error) { return floatCell(a.Value(row)), nil }
	case *array.Boolean:
		return func(row int) (any, error) { return a.Value(row), nil }
	case *array.Date32:
		return func(row int) (any, error) { return dateCell(int32(a.Value(row))), nil }
	case *array.Timestamp:
		return func(row int) (any, error) { return timeCell(int64(a.Value(row)), e.zone), nil }
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		var scratch []byte
		return func(row int) (any, error) {
			scratch = cells.AppendDecimal(scratch[:0], a.Value(row), scale)
			return decimalCell(string(scratch)), nil
		}
	}
	panic(fmt.Sprintf("xlsx: an array of type %s passed CheckSchema", arr.DataType()))
}

func integerCell(n int64) any {
	if n < -maxInteger || n > maxInteger {
		return strconv.FormatInt(n, 10)
	}
	return n
}

func floatCell(f float64) any {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "+") + "inity"
	case abs > mostFloat, abs != 0 && abs < leastFloat, abs == 0 && math.Signbit(f):
		return string(cells.AppendFloat(nil, f))
	}
	return f
}

// decimalCell returns a decimal as a number if a spreadsheet keeps all its
// digits, otherwise as text.
func decimalCell(text string) any {
	digits := strings.TrimPrefix(text, "-")
	if strings.Contains(digits, ".") {
		digits = strings.TrimRight(digits, "0")
	}
	digits = strings.TrimLeft(strings.Replace(digits, ".", "", 1), "0")
	if len(digits) > maxDigits {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return f
}

func dateCell(days int32) any {
	if days < firstDay || days > lastDay {
		return string(cells.AppendDate(nil, days))
	}
	return time.Unix(int64(days)*86_400, 0).UTC()
}

// timeCell returns an instant as the zone's wall-clock time, or as text if a sheet cannot hold
// that.
func timeCell(us int64, zone *time.Location) any {
	_, offset := time.UnixMicro(us).In(zone).Zone()
	wall := us + int64(offset)*1_000_000
	if us%1000 != 0 || wall < firstDay*dayMicros || wall >= (lastDay+1)*dayMicros {
		return string(cells.AppendLocal(nil, us, zone))
	}
	return time.UnixMicro(wall).UTC()
}

// textCell returns the value for a text. A text that does not fit into a cell is an error.
func textCell(s string) (any, error) {
	if len(s) > sheets.MaxText {
		if units := sheets.Units(s); units > sheets.MaxText {
			return nil, fmt.Errorf("the text has %s characters, and a cell holds %s", sheets.Thousands(int64(units)), sheets.Thousands(sheets.MaxText))
		}
	}
	if i := strings.IndexFunc(s, isForbidden); i >= 0 {
		return nil, errors.New("the text holds a character that XML forbids: this is a bug in formetl")
	}
	return escaped(s), nil
}

func isForbidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF'
}
