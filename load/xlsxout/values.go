package xlsxout

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/formetl/formetl/load/internal/cells"
)

const (
	maxDigits  = cells.MaxDigits
	maxColumns = cells.MaxColumns
	maxInteger = 999_999_999_999_999
	// A spreadsheet cannot hold floats beyond these bounds, except 0.
	leastFloat, mostFloat = 2.3e-308, 9.99e307
	// All spreadsheets number the days from firstDay to lastDay in the same
	// way. Both count the days since 1970-01-01.
	firstDay, lastDay = -25_508, 2_932_896
	// epochDay is the day that sheets number 0, 1899-12-30, counted like firstDay.
	epochDay  = -25_569
	dayMicros = 86_400_000_000
)

// cell is what a sheet holds in one row and column.
type cell struct {
	kind kind
	text []byte // the text, the number's digits, or 0 and 1 for a boolean
}

// kind says what a cell holds.
type kind int

const (
	none     kind = iota // a null: no cell is written
	text                 // a text, shown unchanged
	number               // a number, shown in the format of its column
	fraction             // a time with a fraction of a second
	boolean
)

// value returns the cell of a row. The cell is valid until the next call.
type value func(row int) (cell, error)

// values returns, for each column in order, a function that makes the cells of a batch.
func (e *encoder) values(batch arrow.RecordBatch) ([]value, error) {
	list := make([]value, 0, len(e.columns))
	for i, arr := range batch.Columns() {
		f := e.fields[i]
		a, isList := arr.(*array.List)
		switch {
		case !isList:
			list = append(list, optional(arr, e.scalar(arr)))
		case f.As == cells.ListColumns:
			chosen, err := f.Chosen(a)
			if err != nil {
				return nil, fmt.Errorf("xlsx: column %q: %w", e.schema.Field(i).Name, err)
			}
			for n := range f.Headings {
				list = append(list, optional(arr, func(row int) (cell, error) {
					return booleanCell(slices.Contains(chosen(row), n)), nil
				}))
			}
		default:
			render := f.Text(a, e.zone, func(dst []byte, us int64) []byte { return cells.AppendLocal(dst, us, e.zone) })
			var scratch []byte
			list = append(list, optional(arr, func(row int) (cell, error) {
				scratch = render(scratch[:0], row)
				return textCell(scratch)
			}))
		}
	}
	return list, nil
}

// optional returns a value that is v, except that null elements of arr have no cell.
func optional(arr arrow.Array, v value) value {
	if arr.NullN() == 0 {
		return v
	}
	return func(row int) (cell, error) {
		if arr.IsNull(row) {
			return cell{}, nil
		}
		return v(row)
	}
}

// scalar returns a function that makes the cells of an array of scalars. It handles all types
// that columns may have.
func (e *encoder) scalar(arr arrow.Array) value {
	var scratch []byte // memory for the text of a cell
	of := func(render func(dst []byte, row int) (kind, []byte)) value {
		return func(row int) (cell, error) {
			var c cell
			c.kind, scratch = render(scratch[:0], row)
			c.text = scratch
			return c, nil
		}
	}
	switch a := arr.(type) {
	case *array.String:
		return func(row int) (cell, error) {
			scratch = append(scratch[:0], a.Value(row)...)
			return textCell(scratch)
		}
	case *array.Int64:
		return of(func(dst []byte, row int) (kind, []byte) { return appendInteger(dst, a.Value(row)) })
	case *array.Float64:
		return of(func(dst []byte, row int) (kind, []byte) { return appendFloat(dst, a.Value(row)) })
	case *array.Boolean:
		return func(row int) (cell, error) { return booleanCell(a.Value(row)), nil }
	case *array.Date32:
		return of(func(dst []byte, row int) (kind, []byte) { return appendDate(dst, int32(a.Value(row))) })
	case *array.Timestamp:
		return of(func(dst []byte, row int) (kind, []byte) { return appendTime(dst, int64(a.Value(row)), e.zone) })
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		return of(func(dst []byte, row int) (kind, []byte) { return appendDecimal(dst, a.Value(row), scale) })
	}
	panic(fmt.Sprintf("xlsx: no column has the type %s", arr.DataType()))
}

func booleanCell(b bool) cell {
	if b {
		return cell{kind: boolean, text: []byte("1")}
	}
	return cell{kind: boolean, text: []byte("0")}
}

// appendInteger appends an integer to a cell, as text where a spreadsheet would round it.
func appendInteger(dst []byte, n int64) (kind, []byte) {
	dst = strconv.AppendInt(dst, n, 10)
	if n < -maxInteger || n > maxInteger {
		return text, dst
	}
	return number, dst
}

// appendFloat appends a float to a cell, as text where a spreadsheet cannot hold it.
func appendFloat(dst []byte, f float64) (kind, []byte) {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return text, append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return text, append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return text, append(dst, "-Infinity"...)
	case abs > mostFloat, abs != 0 && abs < leastFloat, abs == 0 && math.Signbit(f):
		return text, cells.AppendFloat(dst, f)
	}
	return number, cells.AppendFloat(dst, f)
}

// appendDecimal appends a decimal to a cell, as a number if a spreadsheet keeps all its
// digits, otherwise as text.
func appendDecimal(dst []byte, d decimal128.Num, scale int) (kind, []byte) {
	dst = cells.AppendDecimal(dst, d, scale)
	whole, part, _ := bytes.Cut(bytes.TrimPrefix(dst, []byte("-")), []byte("."))
	part = bytes.TrimRight(part, "0")
	digits := len(bytes.TrimLeft(whole, "0")) + len(part)
	if digits == len(part) { // only zeros stand before the point
		digits = len(bytes.TrimLeft(part, "0"))
	}
	if digits > maxDigits {
		return text, dst
	}
	return number, dst
}

// appendDate appends a day, counted from 1970-01-01, to a cell as the number that sheets give
// the day.
func appendDate(dst []byte, day int32) (kind, []byte) {
	if day < firstDay || day > lastDay {
		return text, cells.AppendDate(dst, day)
	}
	return number, strconv.AppendInt(dst, int64(day)-epochDay, 10)
}

// appendTime appends an instant to a cell as the zone's wall-clock time, or as text if a sheet
// cannot hold the time.
func appendTime(dst []byte, us int64, zone *time.Location) (kind, []byte) {
	_, offset := time.UnixMicro(us).In(zone).Zone()
	wall := us + int64(offset)*1_000_000
	if us%1000 != 0 || wall < firstDay*dayMicros || wall >= (lastDay+1)*dayMicros {
		return text, cells.AppendLocal(dst, us, zone)
	}
	dst = strconv.AppendFloat(dst, float64(wall-epochDay*dayMicros)/dayMicros, 'f', -1, 64)
	if us%1_000_000 != 0 {
		return fraction, dst
	}
	return number, dst
}

// textCell returns the cell of a text. A text that does not fit into a cell is an error.
func textCell(s []byte) (cell, error) {
	if len(s) > cells.MaxText {
		if units := cells.Units(s); units > cells.MaxText {
			return cell{}, fmt.Errorf("the text has %s characters, but a cell can hold only %s", cells.Thousands(int64(units)), cells.Thousands(cells.MaxText))
		}
	}
	if i := bytes.IndexFunc(s, isForbidden); i >= 0 {
		return cell{}, errors.New("the text has a character that XML forbids; this is a bug in formetl")
	}
	return cell{kind: text, text: s}, nil
}

func isForbidden(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF'
}

// appendText appends a text as the content of a cell's element. Markup is escaped
// as XML has it. A line feed and a tab stay, because a parser keeps them.
//
// Spreadsheets decode _x0041_ in a text to an A, from left to right. If a text
// holds such a sequence itself, the sequence's first underscore is therefore
// written as _x005F_.
func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := range len(s) {
		var instead string
		switch s[i] {
		case '&':
			instead = "&amp;"
		case '<':
			instead = "&lt;"
		case '>':
			instead = "&gt;"
		case '"':
			instead = "&quot;"
		case '\r': // a parser would turn CR into a line feed
			instead = "&#xD;"
		case '_':
			if !isCoded(s[i:]) {
				continue
			}
			instead = "_x005F_"
		default:
			continue
		}
		dst = append(append(dst, s[start:i]...), instead...)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// codedLength is the length of a sequence such as _x0041_.
const codedLength = 7

// isCoded tells whether s begins with a sequence that spreadsheets decode.
func isCoded[T ~string | ~[]byte](s T) bool {
	return len(s) >= codedLength && s[0] == '_' && s[1] == 'x' && s[6] == '_' &&
		strings.Trim(string(s[2:6]), "0123456789abcdefABCDEF") == ""
}
