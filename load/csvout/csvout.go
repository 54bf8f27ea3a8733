// Package csvout writes record batches as CSV.
//
// The format is RFC 4180 in UTF-8 with a header and one line a row:
//
//   - A null is an empty field without quotes. The empty string is "".
//   - A field is quoted if it holds a comma, a quote, CR or LF. It is quoted if it
//     begins or ends with a blank or a tab, or begins with a byte order mark, or with #,
//     which some readers take for a comment. The field \. is quoted, because alone on a
//     line it ends the data for PostgreSQL.
//   - A list is one field: its elements joined by |, with a \ before each | and \ inside
//     an element. A null element is \N, which no value is written as. A null list is an
//     empty field without quotes, and an empty list is "". A list that holds only the
//     empty string is "" too, because CSV cannot tell these two apart. formetl reads an
//     empty answer as an empty list, so it never writes a list of one empty string.
//   - If a field's metadata set formetl.list_as to json, its list is a JSON array in one
//     field, with values as in NDJSON. If they set it to columns, the list becomes a
//     column for each choice of formetl.choices. Such a column is true if the list holds
//     the choice, false if not, and empty for a null list.
//   - A timestamp is RFC 3339 with the account's offset, and has microseconds only if
//     they are not zero. A date is YYYY-MM-DD. A decimal has exactly the digits of its
//     scale. A float is the shortest that reads back equal.
//   - In a file with a single column a null is written as "". Many readers skip a blank
//     line and would lose the row.
//
// DuckDB reads such a file back unchanged and tells null from "". This call reads it as
// text:
//
//	read_csv('f.csv', all_varchar=true, allow_quoted_nulls=false)
//
// And this call of DuckDB reads a CSV file of formetl with types:
//
//	read_csv('f.csv', header=true, delim=',', quote='"', escape='"', nullstr='',
//	    allow_quoted_nulls=false, auto_detect=false, strict_mode=true,
//	    columns={'id': 'BIGINT', 'finished': 'TIMESTAMPTZ', 'colours': 'VARCHAR'})
//
// It reads a list column as VARCHAR. This expression splits such a column c into its
// elements:
//
//	CASE WHEN c = '' THEN [] ELSE list_transform(
//	    regexp_extract_all(c || '|', '((?:[^|\\]|\\.)*)\|', 1),
//	    lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END
//
// Lines of more than 2 MB need max_line_size. Leave allow_quoted_nulls out for a file of
// one column. The tests of load/loadtest run both calls.
//
// The profile excel is for people who open the file in a spreadsheet:
//
//   - The file begins with a byte order mark, and its lines end with CR LF.
//   - A timestamp is the account's wall-clock time without an offset, such as 2026-01-02
//     03:04:05. A fraction of a second that is not zero follows as .123 or .123456.
//   - A string, a joined list of strings or a heading gets a ' in front if a spreadsheet
//     would run it as a formula.
//   - A text that holds ; or TAB is quoted, because some spreadsheets also split lines
//     at these.
//
// A ' goes in front of texts that begin with = + - or @, with the full-width form of one
// of these, or with blanks and then one of these, and in front of texts that begin with
// TAB, CR or LF. Plain negative numbers (-5, -3.14) get none, nor do typed columns: -1 in
// an int64 column stays a number. A spreadsheet may still show a text as another one:
// 00123 as 123, 1-2 as a day. CR LF within a text is written unchanged, and most
// spreadsheets turn it into LF.
//
// TSV is the same with tabs in place of commas. Texts that hold a comma or a TAB are
// quoted there too.
//
// Begin reading with New and the encoder's Write.
package csvout

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
)

// The values of EncodeOptions.Profile. "" means Strict.
const (
	Strict = "strict"
	Excel  = "excel"
)

// flushAt is the buffer size in bytes from which on the encoder writes the buffer
// out after a batch. Writes then cost little.
const flushAt = 64 << 10

const bom = "\uFEFF"

// Format describes CSV: its name, its file extension and its encoder.
func Format() load.Format {
	return load.Format{Name: "csv", Extension: ".csv", Text: true, Cells: true, Profiles: true, New: New}
}

// TSV describes CSV with tabs: its name, its file extension and its encoder.
func TSV() load.Format {
	return load.Format{Name: "tsv", Extension: ".tsv", Text: true, Cells: true, New: func(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
		return newEncoder(w, schema, o, '\t')
	}}
}

// New returns an encoder that writes the schema's columns to w as CSV. New
// itself writes nothing: the first Write or Close writes the header.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	return newEncoder(w, schema, o, ',')
}

func newEncoder(w io.Writer, schema *arrow.Schema, o load.EncodeOptions, delimiter byte) (load.Encoder, error) {
	fields, err := cells.Fields(schema)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	var headings []string
	for _, f := range fields {
		headings = append(headings, f.Headings...)
	}
	e := &encoder{
		w: w, zone: cmp.Or(o.Zone, time.UTC), dialect: dialect{delimiter: delimiter}, eol: "\n", schema: schema, fields: fields, single: len(headings) == 1,
	}
	switch o.Profile {
	case "", Strict:
	case Excel:
		e.excel, e.eol, e.told = true, "\r\n", o.Guarded
		e.out = append(e.out, bom...)
	default:
		return nil, fmt.Errorf("csv: unknown profile %q; use %s or %s", o.Profile, Strict, Excel)
	}
	for i, h := range headings {
		if i > 0 {
			e.out = append(e.out, delimiter)
		}
		e.out = appendText(e.out, h, e.dialect)
	}
	e.out = append(e.out, e.eol...)
	return e, nil
}

// dialect is what the text of a CSV field depends on, besides its value.
type dialect struct {
	excel     bool
	delimiter byte // a comma or a TAB

	column string              // the column's heading; "" for the headings themselves
	told   func(column string) // see load.EncodeOptions.Guarded; may be nil
}

type encoder struct {
	w    io.Writer
	zone *time.Location
	dialect
	eol     string
	schema  *arrow.Schema
	fields  []cells.Field // how each field of the schema is written
	single  bool          // there is one column, so a null must not give a blank line
	out     []byte
	scratch []byte // memory for a list's text before it is quoted
}

type column struct {
	arr    arrow.Array
	nulls  bool   // the column has nulls
	null   string // what is written for a null
	append cells.Appender
}

// Write adds the batch's rows to the CSV file, the header before the first ones.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	columns, err := e.columns(batch)
	if err != nil {
		return err
	}
	for row := range int(batch.NumRows()) {
		for i := range columns {
			if i > 0 {
				e.out = append(e.out, e.delimiter)
			}
			c := &columns[i]
			if c.nulls && c.arr.IsNull(row) {
				e.out = append(e.out, c.null...)
				continue
			}
			e.out = c.append(e.out, row)
		}
		e.out = append(e.out, e.eol...)
	}
	if len(e.out) >= flushAt {
		return e.flush()
	}
	return nil
}

// Close writes what is buffered, see load.Encoder.
func (e *encoder) Close() error { return e.flush() }

func (e *encoder) flush() error {
	if len(e.out) == 0 {
		return nil
	}
	_, err := e.w.Write(e.out)
	e.out = e.out[:0]
	return err
}

// field returns an appender for the values of arr. f says how to write a list.
func (e *encoder) field(f cells.Field, arr arrow.Array) cells.Appender {
	switch a := arr.(type) {
	case *array.String:
		d := e.dialect
		d.column = f.Headings[0]
		return func(dst []byte, row int) []byte { return appendText(dst, a.Value(row), d) }
	case *array.List:
		return e.list(f, a)
	}
	return cells.Text(arr, e.timestamp) // the text of such a value never needs quotes
}

func (e *encoder) timestamp(dst []byte, us int64) []byte {
	if e.excel {
		return cells.AppendLocal(dst, us, e.zone)
	}
	return cells.AppendTimestamp(dst, us, e.zone)
}

// appendText appends s, a string or a list of strings, as one field, in quotes where CSV
// requires them. For spreadsheets it puts a ' in front of a text that they would run.
func appendText[T ~string | ~[]byte](dst []byte, s T, d dialect) []byte {
	prefix := ""
	if d.excel && cells.Guarded(s) {
		prefix = "'"
		if d.told != nil && d.column != "" {
			d.told(d.column)
		}
	}
	// Spreadsheets may split lines of CSV at ; and TAB as they do at a comma.
	divided := (d.excel || d.delimiter == '\t') && strings.ContainsAny(string(s), ";\t")
	if !divided && cells.IndexCSV(s) < 0 && !needsQuotesAnyway(s) {
		return append(append(dst, prefix...), s...)
	}
	dst = append(append(dst, '"'), prefix...)
	for i := range len(s) {
		if s[i] == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// needsQuotesAnyway tells whether a field needs quotes although it holds no comma, quote, CR or
// LF: if it is empty or \., or if its first or last character needs quotes.
func needsQuotesAnyway[T ~string | ~[]byte](s T) bool {
	if len(s) == 0 {
		return true
	}
	switch s[0] {
	case ' ', '\t', '#':
		return true
	case bom[0]:
		return len(s) >= len(bom) && string(s[:len(bom)]) == bom
	case '\\':
		return len(s) == 2 && s[1] == '.'
	}
	last := s[len(s)-1]
	return last == ' ' || last == '\t'
}
