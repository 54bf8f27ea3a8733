// Package xlsxout writes record batches as a spreadsheet (.xlsx, Office Open XML)
// with typed cells.
//
// There is one sheet, "Results". It has a bold heading that stays in view, and columns
// as wide as their heading and usual values of their type. A sheet holds 1,048,575 rows
// below the heading. Further rows go into "Results 2", which has a heading of its own.
//
//   - A null is no cell. The empty string is a cell with an empty text.
//   - A string is always text and never a formula. No text is changed: a sequence
//     such as _x0041_, which a spreadsheet would decode, is escaped. A text of more
//     than 32,767 UTF-16 units does not fit into a cell. It gives a load.ErrData,
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
	"github.com/formetl/formetl/load/internal/cells"
)

// Format describes xlsx: its name, its file extension and its encoder.
func Format() load.Format {
	return load.Format{Name: "xlsx", Extension: ".xlsx", Cells: true, FileOnly: true, New: New}
}

// New returns an encoder that writes the schema's columns to w as a workbook.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	if o.Compression != "" && o.Compression != load.CodecNone {
		return nil, fmt.Errorf("xlsx: the compression %q is not possible, because the format has its own; leave compression out", o.Compression)
	}
	fields, err := cells.Fields(schema)
	if err != nil {
		return nil, fmt.Errorf("xlsx: %w", err)
	}
	e := &encoder{
		w: w, schema: schema, zone: cmp.Or(o.Zone, time.UTC), maxRows: cells.MaxRows,
		fields: fields, columns: columnsOf(schema, fields),
	}
	if n := len(e.columns); n > maxColumns {
		return nil, &load.Error{
			Kind: load.ErrData, Path: "xlsx", Remedy: "list fewer columns in a schema, or write csv or parquet",
			Err: fmt.Errorf("%s columns are more than a sheet can have (%s)", cells.Thousands(int64(n)), cells.Thousands(maxColumns)),
		}
	}
	return e, nil
}

// The key and value of the metadata that mark the field with the results' ids. They must equal
// those in package schemas, which this package does not import.
const (
	metaFrom     = "formetl.from"
	fromResultID = "result_id"
)

type encoder struct {
	w       io.Writer
	schema  *arrow.Schema
	zone    *time.Location
	fields  []cells.Field // how each field of the schema is written
	columns []column
	maxRows int64 // rows of a sheet, including the heading

	book *book // the workbook; nil before the first Write or Close
}

// Write adds the batch's rows to the workbook. It begins a new sheet whenever a sheet is full.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	if err := e.begin(); err != nil {
		return err
	}
	values, err := e.values(batch)
	if err != nil {
		return err
	}
	cells := make([]cell, len(values)) // the cells of one row
	for row := range int(batch.NumRows()) {
		if e.book.sheet.rows >= e.maxRows {
			if err := e.book.next(); err != nil {
				return err
			}
		}
		for i, v := range values {
			if cells[i], err = v(row); err != nil {
				return e.failed(i, batch, row, err)
			}
		}
		if err := e.book.row(cells); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the workbook if there is none.
func (e *encoder) begin() (err error) {
	if e.book == nil {
		e.book, err = newBook(e.w, e.columns)
	}
	return err
}

// failed returns err with the value's place in the workbook and the id of its
// result.
func (e *encoder) failed(column int, batch arrow.RecordBatch, row int, err error) error {
	place := fmt.Sprintf("xlsx: column %q, row %d", e.columns[column].heading, e.book.sheet.rows+1)
	if n := len(e.book.names); n > 1 {
		place += fmt.Sprintf(" of sheet %q", e.book.names[n-1])
	}
	if id := e.resultID(batch, row); id != "" {
		place += fmt.Sprintf(" (result %s)", id)
	}
	return &load.Error{Kind: load.ErrData, Path: place, Remedy: "write csv or parquet, which can hold it", Err: err}
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

// Close ends the last sheet and the workbook, see load.Encoder.
func (e *encoder) Close() error {
	if err := e.begin(); err != nil {
		return err
	}
	return e.book.close()
}
