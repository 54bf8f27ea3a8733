// Package xlsxout writes record batches as a spreadsheet (.xlsx, Office Open XML)
// with typed cells.
//
// There is one sheet, "Results". It has a bold heading that stays in view, a filter,
// and columns as wide as the heading and the first rows need. A sheet holds 1,048,575
// rows below the heading. Further rows go into "Results 2", which has a heading of
// its own.
//
//   - A null is no cell. The empty string is a cell with an empty text.
//   - A string is always text and never a formula. No text is changed: a sequence
//     such as _x0041_, which a spreadsheet would decode, is escaped. A text of more
//     than 32,767 UTF-16 units does not fit into a cell. It gives a load.CellError,
//     which names the sheet's row and the result.
//   - Floats are numbers, as are integers and decimals of at most 15 significant
//     digits. A decimal shows the digits of its scale. Longer integers and decimals
//     are text, because a spreadsheet would round them. Floats that it cannot hold
//     are text too: NaN, Infinity, -0, and those beyond 2.3e-308 and 9.99e307.
//   - A date is the number of a day, shown as 2026-01-02. A timestamp is the
//     account's wall-clock time, shown as 2026-01-02 03:04:05, with .123 only if its
//     second has a fraction. A sheet has no zones and no offsets: the hour that
//     occurs twice in autumn shows the same times twice. Days before 1900-03-01,
//     about which spreadsheets disagree, and after 9999-12-31 are text. So are times
//     with parts of a millisecond.
//   - Lists are written as in CSV: as text joined by |, as JSON, or as a column for
//     each choice.
//
// Equal rows give equal bytes: the file holds no time of writing.
//
// A workbook is written as its rows come: each sheet in turn, and at the end the parts
// that name the sheets. cmd/README.md tells why no library writes them. Begin reading
// with the encoder's Write.
package xlsxout

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lists"
	"github.com/formetl/formetl/load/internal/rows"
	"github.com/formetl/formetl/load/internal/sheets"
)

// sampleRows is how many rows determine the widths of the columns.
const sampleRows = 100

// Format describes xlsx: its name, its file extension and its encoder.
func Format() load.Format {
	return load.Format{Name: "xlsx", Extension: ".xlsx", FileOnly: true, New: New, Scan: scan}
}

// New returns an encoder that writes the schema's columns to w as a workbook.
// It writes nothing before it has sampleRows rows.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	e, err := newEncoder(w, schema, o)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func newEncoder(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (*encoder, error) {
	if o.Compression != "" && o.Compression != load.CodecNone {
		return nil, fmt.Errorf("xlsx: there is no compression %q: the format has its own", o.Compression)
	}
	fields, err := lists.Of(schema)
	if err != nil {
		return nil, fmt.Errorf("xlsx: %w", err)
	}
	e := &encoder{
		w: w, schema: schema, o: o, zone: cmp.Or(o.Zone, time.UTC), maxRows: sheets.MaxRows,
		fields: fields, columns: columnsOf(schema, fields),
	}
	if n := len(e.columns); n > maxColumns {
		return nil, &load.CellError{
			Format:  "xlsx",
			Problem: fmt.Sprintf("%s columns are more than the %s of a sheet", sheets.Thousands(int64(n)), sheets.Thousands(maxColumns)),
			Hint:    "choose columns by a schema, or write csv or parquet",
		}
	}
	return e, nil
}

// These metadata mark the field with the results' ids. They must equal those of
// package schemas, which this package does not import.
const (
	metaFrom     = "formetl.from"
	fromResultID = "result_id"
)

type encoder struct {
	w       io.Writer
	schema  *arrow.Schema
	o       load.EncodeOptions
	zone    *time.Location
	fields  []lists.Field // one for each field of the schema
	columns []column
	maxRows int64 // rows of a sheet, including the heading

	queue rows.Queue // the first rows, until the widths are known
	book  *book      // nil until the widths are known
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	e.queue.Push(batch)
	if e.book == nil && e.queue.Len() < sampleRows {
		return nil
	}
	return e.drain()
}

// drain writes the queued rows. It first begins the workbook if there is none.
func (e *encoder) drain() error {
	if e.book == nil {
		e.measure()
		var err error
		if e.book, err = newBook(e.w, e.o.Metadata, e.columns); err != nil {
			return err
		}
	}
	for _, p := range e.queue.Peek(e.queue.Len()) {
		if err := e.write(p); err != nil {
			return err
		}
	}
	e.queue.Discard()
	return nil
}

// write writes the rows of p. It begins a new sheet whenever one is full.
func (e *encoder) write(p rows.Piece) error {
	values, err := e.values(p.Batch)
	if err != nil {
		return err
	}
	cells := make([]cell, len(values)) // of a row
	for row := p.From; row < p.To; row++ {
		if e.book.sheet.rows >= e.maxRows {
			if err := e.book.next(); err != nil {
				return err
			}
		}
		for i, v := range values {
			if cells[i], err = v(row); err != nil {
				return e.failed(i, p.Batch, row, err)
			}
		}
		if err := e.book.row(cells); err != nil {
			return err
		}
	}
	return nil
}

// failed returns err with the value's place in the workbook and the id of its
// result.
func (e *encoder) failed(column int, batch arrow.RecordBatch, row int, err error) error {
	refused := &load.CellError{
		Format: "xlsx", Column: e.columns[column].heading, Row: e.book.sheet.rows + 1, Result: e.resultID(batch, row),
		Problem: err.Error(), Hint: "write csv or parquet, which take it",
	}
	if n := len(e.book.names); n > 1 {
		refused.Sheet = e.book.names[n-1]
	}
	return refused
}

// resultID returns the id of a row's result, or "" if no column holds it.
func (e *encoder) resultID(batch arrow.RecordBatch, row int) string {
	for i, f := range e.schema.Fields() {
		if from, _ := f.Metadata.GetValue(metaFrom); from != fromResultID || batch.Column(i).IsNull(row) {
			continue
		}
		switch a := batch.Column(i).(type) {
		case *array.Int64:
			return strconv.FormatInt(a.Value(row), 10)
		case *array.String:
			return strconv.QuoteToGraphic(a.Value(row))
		}
	}
	return ""
}

// Close implements load.Encoder.
func (e *encoder) Close() error {
	if err := e.drain(); err != nil {
		return err
	}
	return e.book.close()
}

// Discard releases the rows that were not written.
func (e *encoder) Discard() { e.queue.Discard() }
