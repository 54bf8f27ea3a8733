// Package jsonout writes record batches as JSON: NDJSON with one object a line,
// or one array for a whole file.
//
// The keys of an object are the columns in their order. A null is null, also
// for a list. A list is an array. An int64 is a number with all its digits, and
// a float is the shortest number that reads back equal. A decimal is a string
// with exactly the digits of its scale, because most readers turn a number into
// a float. A timestamp is a string in RFC 3339 with the account's offset, as in
// CSV. A date is a string "YYYY-MM-DD".
//
// The output is always valid JSON in valid UTF-8. U+2028 and U+2029 are
// escaped, because JavaScript took them for line ends. Bytes that are not UTF-8
// become U+FFFD. A float that is not finite becomes null. The characters < >
// and & are not escaped. Begin reading with the encoder's Write.
package jsonout

import (
	"cmp"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
)

// flushAt is the size in bytes at which the encoder writes its buffer out.
const flushAt = 64 << 10

// NDJSON describes the format with one JSON object on each line: its name, its
// file extension and its encoder.
func NDJSON() load.Format {
	return load.Format{Name: "ndjson", Extension: ".ndjson", Text: true, New: opener(false)}
}

// JSON describes the format with one JSON array in each file. Each object is on
// a line of its own. A file without rows is [].
func JSON() load.Format {
	return load.Format{Name: "json", Extension: ".json", Text: true, FileOnly: true, New: opener(true)}
}

// opener returns the function New of a format. If array is set, a file is one array.
func opener(array bool) func(io.Writer, *arrow.Schema, load.EncodeOptions) (load.Encoder, error) {
	return func(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
		e := &encoder{w: w, zone: cmp.Or(o.Zone, time.UTC), array: array}
		for i, f := range schema.Fields() {
			key := []byte{','}
			if i == 0 {
				key[0] = '{'
			}
			e.keys = append(e.keys, append(cells.AppendJSON(key, f.Name), ':'))
		}
		return e, nil
	}
}

type encoder struct {
	w     io.Writer
	zone  *time.Location
	array bool
	keys  [][]byte // what precedes each value: `{"first":`, `,"second":`, …
	rows  bool     // at least one row was written
	out   []byte
}

type column struct {
	key    []byte
	arr    arrow.Array
	nulls  bool
	append cells.Appender
}

// Write adds the rows of the batch to the JSON file, see load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	columns := make([]column, batch.NumCols())
	for i, arr := range batch.Columns() {
		columns[i] = column{key: e.keys[i], arr: arr, nulls: arr.NullN() > 0, append: cells.JSON(arr, e.zone)}
	}
	for row := range int(batch.NumRows()) {
		switch {
		case e.array && e.rows:
			e.out = append(e.out, ",\n"...)
		case e.array:
			e.out = append(e.out, "[\n"...)
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

// Close writes what is buffered and the end of the JSON, see load.Encoder.
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
	return err
}
