package tables

import (
	"encoding/binary"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
)

// Format describes the bytes of rows, which the destination takes. No file has this format.
func (d *Dialect) Format() load.Format {
	return load.Format{Name: d.Name, Extension: ".rows", New: d.newEncoder}
}

// The binary format of COPY (PostgreSQL manual, "COPY", "Binary Format").
const (
	copySignature = "PGCOPY\n\377\r\n\000"
	copyFlags     = "\000\000\000\000\000\000\000\000" // no flags, and no extension of the header
	copyTrailer   = "\377\377"
)

// Days and microseconds between the epochs of Arrow (1970) and PostgreSQL (2000).
const (
	epochDays   = 10_957
	epochMicros = epochDays * 24 * 3600 * 1_000_000
)

// flushAt is the buffer size in bytes at which the encoder writes the buffer out.
const flushAt = 64 << 10

type encoder struct {
	w     io.Writer
	begun bool
	head  []byte
	out   []byte
}

func (d *Dialect) newEncoder(w io.Writer, schema *arrow.Schema, _ load.EncodeOptions) (load.Encoder, error) {
	h, err := d.HeaderOf(schema)
	if err != nil {
		return nil, err
	}
	return &encoder{w: w, head: append(h.Encode(), copySignature+copyFlags...)}, nil
}

// begin writes what stands in front of the rows.
func (e *encoder) begin() {
	if !e.begun {
		e.out, e.begun = append(e.out, e.head...), true
	}
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	e.begin()
	columns := batch.Columns()
	appends := make([]appender, len(columns))
	for i, arr := range columns {
		appends[i] = appenderOf(arr)
	}
	for row := range int(batch.NumRows()) {
		e.out = binary.BigEndian.AppendUint16(e.out, uint16(len(columns))) //nolint:gosec // the bits are kept
		for i, arr := range columns {
			if arr.IsNull(row) {
				e.out = append(e.out, nullLength...)
				continue
			}
			e.out = withLength(e.out, appends[i], row)
		}
		if len(e.out) >= flushAt {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close implements load.Encoder.
func (e *encoder) Close() error {
	e.begin()
	e.out = append(e.out, copyTrailer...)
	return e.flush()
}

func (e *encoder) flush() error {
	_, err := e.w.Write(e.out)
	e.out = e.out[:0]
	return err
}

// nullLength stands in the place of a value's length where there is no value.
const nullLength = "\377\377\377\377"

// appender appends the value of a row without its length.
type appender func(out []byte, row int) []byte

// withLength appends a value behind its length.
func withLength(out []byte, value appender, row int) []byte {
	at := len(out)
	out = value(append(out, 0, 0, 0, 0), row)
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4)) //nolint:gosec // a value is smaller than 1 GB
	return out
}

// appenderOf returns what appends the values of an array.
func appenderOf(arr arrow.Array) appender {
	switch a := arr.(type) {
	case *array.Int64:
		return func(out []byte, row int) []byte { return appendInt64(out, a.Value(row)) }
	case *array.Float64:
		return func(out []byte, row int) []byte {
			return binary.BigEndian.AppendUint64(out, math.Float64bits(a.Value(row)))
		}
	case *array.Boolean:
		return func(out []byte, row int) []byte {
			if a.Value(row) {
				return append(out, 1)
			}
			return append(out, 0)
		}
	case *array.Date32:
		return func(out []byte, row int) []byte {
			return binary.BigEndian.AppendUint32(out, uint32(int32(a.Value(row))-epochDays)) //nolint:gosec // the bits are kept
		}
	case *array.Timestamp:
		return func(out []byte, row int) []byte { return appendInt64(out, int64(a.Value(row))-epochMicros) }
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(out []byte, row int) []byte { return appendNumeric(out, a.Value(row), scale) }
	case *array.List:
		return listAppender(a)
	}
	text := arr.(*array.String)
	return func(out []byte, row int) []byte { return appendText(out, text.Value(row)) }
}

func appendInt64(out []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(out, uint64(n)) //nolint:gosec // the bits are kept
}

// appendText appends a text. The server takes neither a NUL character nor what is no UTF-8.
func appendText(out []byte, text string) []byte {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return append(out, text...)
}

// listAppender appends lists as arrays of one dimension, or of none where the list is empty.
func listAppender(a *array.List) appender {
	values := a.ListValues()
	element := appenderOf(values)
	oid := elementOID(values.DataType())
	return func(out []byte, row int) []byte {
		from, to := a.ValueOffsets(row)
		var dimensions, nulls uint32
		if from < to {
			dimensions = 1
		}
		for i := from; i < to; i++ {
			if values.IsNull(int(i)) {
				nulls = 1
				break
			}
		}
		for _, word := range []uint32{dimensions, nulls, oid} {
			out = binary.BigEndian.AppendUint32(out, word)
		}
		if dimensions == 0 {
			return out
		}
		out = binary.BigEndian.AppendUint32(out, uint32(to-from)) //nolint:gosec // not negative
		out = binary.BigEndian.AppendUint32(out, 1)               // the first index
		for i := from; i < to; i++ {
			if values.IsNull(int(i)) {
				out = append(out, nullLength...)
				continue
			}
			out = withLength(out, element, int(i))
		}
		return out
	}
}

// elementOID returns the server's number of the type of a list's elements. The numbers of
// built-in types are fixed.
func elementOID(t arrow.DataType) uint32 {
	switch t.ID() {
	case arrow.INT64:
		return 20
	case arrow.FLOAT64:
		return 701
	case arrow.BOOL:
		return 16
	case arrow.DATE32:
		return 1082
	case arrow.TIMESTAMP:
		return 1184
	case arrow.DECIMAL128:
		return 1700
	}
	return 25
}
