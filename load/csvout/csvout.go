// Package csvout writes record batches as CSV.
//
// The format is RFC 4180 in UTF-8 with a header and one line a row:
//
//   - null is an empty field without quotes; the empty string is "".
//   - A field is quoted if it holds a comma, a quote, CR or LF, begins or ends
//     with a blank or a tab, begins with # (readers that guess take it for a
//     comment) or a byte order mark, or is \. alone (the end of data for
//     PostgreSQL).
//   - A list is one field: its elements joined by |, with a \ before each |
//     and \ inside an element. An element that is null is \N, which no value
//     can be written as. A null list is empty without quotes, an empty list
//     is "". A list that holds only the empty string is "" too: CSV alone does
//     not keep these two apart. formetl makes an empty list of an empty answer,
//     so it never writes the second.
//   - If a field's metadata say formetl.list_as json, its list is a JSON array in
//     one field, with values as in NDJSON. If they say columns, a column for each
//     of formetl.choices takes its place: true if the list holds the choice,
//     false if not, empty for a null list.
//   - A timestamp is RFC 3339 with the account's offset, with microseconds
//     only where they are not zero; a date is YYYY-MM-DD; a decimal has exactly
//     the digits of its scale; a float is the shortest that reads back equal.
//   - Where the file has a single column, a null is written "", because a
//     blank line is skipped by many readers and the row would be lost.
//
// DuckDB reads such a file back equal, null and "" apart, as text with
//
//	read_csv('f.csv', all_varchar=true, allow_quoted_nulls=false)
//
// and with types with
//
//	read_csv('f.csv', header=true, delim=',', quote='"', escape='"', nullstr='',
//	    allow_quoted_nulls=false, auto_detect=false, strict_mode=true,
//	    columns={'id': 'BIGINT', 'finished': 'TIMESTAMPTZ', 'colours': 'VARCHAR'})
//
// where a list column is read as VARCHAR and divided by
//
//	CASE WHEN c = '' THEN [] ELSE list_transform(
//	    regexp_extract_all(c || '|', '((?:[^|\\]|\\.)*)\|', 1),
//	    lambda x: CASE WHEN x = '\N' THEN NULL ELSE regexp_replace(x, '\\(.)', '\1', 'g') END) END
//
// (lines of more than 2 MB need max_line_size; a file of one column is read
// without allow_quoted_nulls). Both calls stand in load/loadtest's tests.
//
// The profile excel is for people who open the file in a spreadsheet:
//
//   - It begins with a byte order mark and ends lines with CR LF.
//   - A timestamp is the account's wall clock without an offset,
//     2026-01-02 03:04:05, with .123 or .123456 only where that is not zero.
//   - In front of the text of a string, a joined list of strings or a heading
//     stands a ' where a spreadsheet would run the text as a formula or show
//     another one in its place.
//   - A text with ; or TAB is in quotes: spreadsheets that divide at commas
//     may be set to divide at these too.
//   - Warnings tell of more rows, longer texts and more columns than a
//     spreadsheet shows, and of int64 and decimal numbers of more digits than it
//     keeps. They also tell of texts that become formulas where lines are divided
//     at ; alone, which no quotes prevent.
//
// The ' stands in front of
//
//   - what begins with = + - @ TAB CR or LF, or with the full-width form of
//     one of the first four, or with one of these after blanks;
//   - numbers that are not plain: 00123, +4930123, 1e5, 1,5, .5, 5%, (5), 18+,
//     more than 15 digits, or with blanks around them;
//   - parts of dates, fractions and days that are not written year first: 1-2,
//     3/4, 1.2., 1.2.2026, 2026-05, 12/31/2025, 1:2, mar 5, SEPT2, 5. März 2026,
//     5 de mayo, 1月2日 (with the months of most European languages);
//   - true and false, unless in capitals.
//
// It does not stand in front of plain numbers (-5, 3.14, 19.90), whose value a
// spreadsheet keeps: they have no leading zero or plus, digits on both sides of a
// point, and at most 15 of them. Nor does it stand in front of dates with the year
// first and times of day (2026-01-02, 2026-01-02 03:04, 9:30, 12:30:15), or in
// typed columns: -1 in an int64 column stays a number. CR LF within a text is
// written as it is, and most spreadsheets make LF of it.
//
// Begin reading with New and the encoder's Write.
package csvout

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
	"github.com/formetl/formetl/load/internal/lists"
	"github.com/formetl/formetl/load/internal/sheets"
)

// Profiles of EncodeOptions.Profile; "" is Strict.
const (
	Strict = "strict"
	Excel  = "excel"
)

// flushAt is the size at which the buffer is written out. It is large enough to
// make the cost of a write negligible, and small enough for the CPU's cache.
const flushAt = 64 << 10

const bom = "\uFEFF"

// Format describes the format for the table of formats.
func Format() load.Format {
	return load.Format{Name: "csv", Extension: ".csv", Text: true, New: New}
}

// New returns an encoder that writes the schema's columns to w as CSV. New
// itself writes nothing: the first Write or Close writes the header.
func New(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (load.Encoder, error) {
	e, err := newEncoder(w, schema, o)
	if err != nil {
		return nil, err
	}
	return load.Guard(schema, e), nil
}

func newEncoder(w io.Writer, schema *arrow.Schema, o load.EncodeOptions) (*encoder, error) {
	if err := load.CheckSchema(schema); err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	fields, err := lists.Of(schema)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	var headings []string
	for _, f := range fields {
		headings = append(headings, f.Headings...)
	}
	e := &encoder{
		w: w, zone: cmp.Or(o.Zone, time.UTC), eol: "\n", schema: schema, fields: fields, single: len(headings) == 1,
	}
	switch o.Profile {
	case "", Strict:
	case Excel:
		e.excel, e.eol = true, "\r\n"
		e.out = append(e.out, bom...)
	default:
		return nil, fmt.Errorf("csv: there is no profile %q: use %s or %s", o.Profile, Strict, Excel)
	}
	for i, h := range headings {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.out = appendText(e.out, h, e.excel)
	}
	e.out = append(e.out, e.eol...)
	e.limits = newLimits(e.excel, schema, len(headings))
	return e, nil
}

type encoder struct {
	w       io.Writer
	zone    *time.Location
	eol     string
	excel   bool
	schema  *arrow.Schema
	fields  []lists.Field // of the schema
	single  bool          // there is one column, so a null must not give a blank line
	out     []byte
	scratch []byte // a list's text before it is quoted
	limits  limits
}

type column struct {
	field  int // of the schema
	arr    arrow.Array
	nulls  bool
	null   string // the field of a null
	append cells.Appender
}

// Write implements load.Encoder.
func (e *encoder) Write(batch arrow.RecordBatch) error {
	columns, err := e.columns(batch)
	if err != nil {
		return err
	}
	for row := range int(batch.NumRows()) {
		for i := range columns {
			if i > 0 {
				e.out = append(e.out, ',')
			}
			c := &columns[i]
			if c.nulls && c.arr.IsNull(row) {
				e.out = append(e.out, c.null...)
				continue
			}
			start := len(e.out)
			e.out = c.append(e.out, row)
			e.limits.cell(c.field, e.out[start:])
		}
		e.limits.rows++
		e.out = append(e.out, e.eol...)
		if len(e.out) >= flushAt {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close implements load.Encoder.
func (e *encoder) Close() error { return e.flush() }

func (e *encoder) flush() error {
	if len(e.out) == 0 {
		return nil
	}
	_, err := e.w.Write(e.out)
	e.out = e.out[:0]
	if err != nil {
		return fmt.Errorf("csv: write: %w", err)
	}
	return nil
}

// field returns the appender of a column.
func (e *encoder) field(f lists.Field, arr arrow.Array) cells.Appender {
	switch a := arr.(type) {
	case *array.String:
		return func(dst []byte, row int) []byte { return appendText(dst, a.Value(row), e.excel) }
	case *array.List:
		return e.list(f, a)
	}
	return cells.Text(arr, e.timestamp) // its text never needs quotes
}

func (e *encoder) timestamp(dst []byte, us int64) []byte {
	if e.excel {
		return cells.AppendLocal(dst, us, e.zone)
	}
	return cells.AppendTimestamp(dst, us, e.zone)
}

// appendText appends the text of a string or of a list of strings. In the
// profile excel it puts a ' in front where needed.
func appendText[T sheets.Text](dst []byte, s T, excel bool) []byte {
	if !excel {
		return appendField(dst, s, "", false)
	}
	prefix := ""
	if sheets.Guarded(s) {
		prefix = "'"
	}
	return appendField(dst, s, prefix, cells.HasDivider(s))
}

// appendField appends prefix and s as one field, in quotes where needed.
func appendField[T sheets.Text](dst []byte, s T, prefix string, quoted bool) []byte {
	special := cells.IndexCSV(s)
	if special < 0 && !quoted && !odd(s) {
		return append(append(dst, prefix...), s...)
	}
	dst = append(append(dst, '"'), prefix...)
	if special < 0 {
		return append(append(dst, s...), '"')
	}
	start := 0
	for i := special; i < len(s); i++ {
		if s[i] == '"' {
			dst = append(append(dst, s[start:i]...), '"')
			start = i
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// odd tells whether a field without special characters still needs quotes,
// because it is empty or because of its first or last character.
func odd[T sheets.Text](s T) bool {
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
