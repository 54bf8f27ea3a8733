// Package jsonout writes record batches as JSON: NDJSON with one object a
// line, or one array for a whole file.
//
// An object's keys are the columns in their order. Null is null, a list is an
// array (a null list null, an empty one []). An int64 is a number with all its
// digits, a float the shortest number that reads back equal; a decimal is a
// string with exactly the digits of its scale, because most readers make a
// float of a number. A timestamp is a string in RFC 3339 with the account's
// offset, as in CSV, a date "YYYY-MM-DD".
//
// The output is valid JSON in valid UTF-8 whatever the input: U+2028 and U+2029
// are escaped (JavaScript took them for line ends), bytes that are not UTF-8
// become U+FFFD, a float that is not finite becomes null. < > and & are not
// escaped.
package jsonout

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
)

// flushAt is the size at which the buffer is written out.
const flushAt = 64 << 10

// NDJSON describes the format with one object on each line, for the table of
// formats.
func NDJSON() load.Format {
	return load.Format{Name: "ndjson", Extension: ".ndjson", Text: true, New: newLines}
}

// JSON describes the format with one array in a file, for the table of formats.
// Each object is on a line of its own. A file without rows is [].
func JSON() load.Format {
	return load.Format{Name: "json", Extension: ".json", Text: true, FileOnly: true, New: newArray}
}

func newLines(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	e, err := newEncoder(w, schema, o, "ndjson")
	if err != nil {
		return nil, err
	}
	return load.Guard(schema, e), nil
}

func newArray(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	e, err := newEncoder(w, schema, o, "json")
	if err != nil {
		return nil, err
	}
	e.array = true
	return load.Guard(schema, e), nil
}

type encoder struct {
	w     io.Writer
	name  string // of the format, for errors
	zone  *time.Location
	array bool
	keys  [][]byte // `{"first":`, `,"second":`, …
	rows  bool     // at least one row was written
	out   []byte
}

func newEncoder(w io.Writer, schema *arrow.Schema, o load.EncodeOptions, name string) (*encoder, error) {
	if err := load.CheckSchema(schema); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	e := &encoder{w: w, name: name, zone: o.Zone, keys: make([][]byte, schema.NumFields())}
	if e.zone == nil {
		e.zone = time.UTC
	}
	for i, f := range schema.Fields() {
		key := []byte{','}
		if i == 0 {
			key[0] = '{'
		}
		e.keys[i] = append(cells.AppendJSON(key, f.Name), ':')
	}
	return e, nil
}

// appender appends the value of one row. The value is not null.
type appender func(dst []byte, row int) []byte

type column struct {
	key    []byte
	arr    arrow.Array
	nulls  bool
	append appender
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	columns := make([]column, batch.NumCols())
	for i, arr := range batch.Columns() {
		columns[i] = column{key: e.keys[i], arr: arr, nulls: arr.NullN() > 0, append: e.value(arr)}
	}
	for row := range int(batch.NumRows()) {
		if e.array {
			e.out = append(e.out, e.separator()...)
		}
		e.rows = true
		for i := range columns {
			c := &columns[i]
			e.out = append(e.out, c.key...)
			if c.nulls && c.arr.IsNull(row) {
				e.out = append(e.out, "null"...)
				continue
			}
			e.out = c.append(e.out, row)
		}
		e.out = append(e.out, '}')
		if !e.array {
			e.out = append(e.out, '\n')
		}
		if len(e.out) >= flushAt {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// separator is the text before a row of the array.
func (e *encoder) separator() string {
	if e.rows {
		return ",\n"
	}
	return "[\n"
}

// Close implements load.Encoder.
func (e *encoder) Close() error {
	switch {
	case e.array && e.rows:
		e.out = append(e.out, "\n]\n"...)
	case e.array:
		e.out = append(e.out, "[]\n"...)
	}
	return e.flush()
}

func (e *encoder) flush() error {
	if len(e.out) == 0 {
		return nil
	}
	_, err := e.w.Write(e.out)
	e.out = e.out[:0]
	if err != nil {
		return fmt.Errorf("%s: write: %w", e.name, err)
	}
	return nil
}

// value returns the appender of a column. CheckSchema has refused all types but
// these.
func (e *encoder) value(arr arrow.Array) appender {
	switch a := arr.(type) {
	case *array.String:
		return func(dst []byte, row int) []byte { return cells.AppendJSON(dst, a.Value(row)) }
	case *array.Int64:
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, a.Value(row), 10) }
	case *array.Float64:
		return func(dst []byte, row int) []byte { return appendFloat(dst, a.Value(row)) }
	case *array.Boolean:
		return func(dst []byte, row int) []byte { return strconv.AppendBool(dst, a.Value(row)) }
	case *array.Date32:
		return func(dst []byte, row int) []byte {
			return append(cells.AppendDate(append(dst, '"'), int32(a.Value(row))), '"')
		}
	case *array.Timestamp:
		return func(dst []byte, row int) []byte {
			return append(cells.AppendTimestamp(append(dst, '"'), int64(a.Value(row)), e.zone), '"')
		}
	case *array.Decimal128:
		scale := int(a.DataType().(*arrow.Decimal128Type).Scale)
		return func(dst []byte, row int) []byte {
			return append(cells.AppendDecimal(append(dst, '"'), a.Value(row), scale), '"')
		}
	case *array.List:
		return e.list(a)
	}
	panic(fmt.Sprintf("%s: an array of type %s passed CheckSchema", e.name, arr.DataType()))
}

// list returns the appender of a column of lists.
func (e *encoder) list(a *array.List) appender {
	values := a.ListValues()
	element := e.value(values)
	return func(dst []byte, row int) []byte {
		start, end := a.ValueOffsets(row)
		dst = append(dst, '[')
		for i := start; i < end; i++ {
			if i > start {
				dst = append(dst, ',')
			}
			if values.IsNull(int(i)) {
				dst = append(dst, "null"...)
				continue
			}
			dst = element(dst, int(i))
		}
		return append(dst, ']')
	}
}

func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return cells.AppendFloat(dst, f)
}
