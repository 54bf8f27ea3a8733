package csvout

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/internal/sheets"
)

// limits counts what a spreadsheet would not show unchanged, for the warnings
// of the profile excel.
type limits struct {
	maxRows int64 // rows of a sheet, including the heading
	rows    int64
	columns int
	fields  []fieldLimits
	excel   bool
}

// fieldLimits are the counts of one field of the schema.
type fieldLimits struct {
	exact    bool  // its type is an integer or a decimal, whose digits must not be rounded
	long     int64 // texts too long for a cell
	rounded  int64 // numbers that a spreadsheet rounds
	formulas int64 // texts that become formulas if a spreadsheet splits lines only at ;
}

func newLimits(excel bool, schema *arrow.Schema, columns int) limits {
	l := limits{maxRows: sheets.MaxRows, columns: columns, fields: make([]fieldLimits, schema.NumFields()), excel: excel}
	for i, f := range schema.Fields() {
		kind := f.Type
		if list, ok := kind.(*arrow.ListType); ok {
			kind = list.Elem() // a list of one number is shown as a number
		}
		l.fields[i].exact = kind.ID() == arrow.INT64 || kind.ID() == arrow.DECIMAL128
	}
	return l
}

// cell counts one field of a row. field is its index in the schema, and written is its text in the
// file.
func (l *limits) cell(field int, written []byte) {
	if !l.excel || len(written) == 0 {
		return
	}
	f := &l.fields[field]
	if len(written) > sheets.MaxText && unitsOf(written) > sheets.MaxText {
		f.long++
	}
	if f.exact && len(written) > sheets.MaxDigits && digitsOf(written) > sheets.MaxDigits {
		f.rounded++
	}
	if written[0] == '"' && hidesFormula(written) {
		f.formulas++
	}
}

// unitsOf returns the length of a field's text in UTF-16 units, without its quotes.
func unitsOf(written []byte) int {
	units := sheets.Units(written)
	if written[0] == '"' {
		units -= bytes.Count(written, []byte{'"'})/2 + 1
	}
	return units
}

// digitsOf returns the number of significant digits of a number. It returns 0
// for a field that is not a single number, such as a list of several.
func digitsOf(written []byte) int {
	whole, fraction, _ := bytes.Cut(bytes.TrimPrefix(written, []byte("-")), []byte("."))
	digits := slices.Concat(whole, fraction)
	if len(bytes.Trim(digits, "0123456789")) > 0 {
		return 0
	}
	return len(bytes.Trim(digits, "0"))
}

// hidesFormula tells whether a quoted field holds a formula after a ;, a TAB or a
// line break. A spreadsheet that splits lines only at ; ignores quotes in the
// middle of a cell, and would run it. A text that begins with + - or @ must also
// call something, so that a smiley or a list with dashes causes no warning.
func hidesFormula(written []byte) bool {
	for {
		i := bytes.IndexAny(written, ";\t\r\n")
		if i < 0 {
			return false
		}
		written = bytes.TrimLeft(written[i+1:], "\" \u00a0")
		end := bytes.IndexAny(written, ";\t\r\n")
		if end < 0 {
			end = len(written)
		}
		if first := written[:end]; len(first) > 0 && (first[0] == '=' || bytes.IndexByte([]byte("+-@"), first[0]) >= 0 && calls(first)) {
			return true
		}
	}
}

// call matches the call of a function, such as SUM(.
var call = regexp.MustCompile(`[\p{L}\p{Nd}]\(`)

// calls tells whether a formula calls a function or another program.
func calls(s []byte) bool {
	return bytes.IndexByte(s, '|') >= 0 && bytes.IndexByte(s, '!') >= 0 || call.Match(s)
}

// Warnings implements load.Warner.
func (e *encoder) Warnings() []string {
	l := &e.limits
	if !l.excel {
		return nil
	}
	var list []string
	warn := func(due bool, format string, args ...any) {
		if due {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	warn(l.rows+1 > l.maxRows, "%s rows are more than the %s that a spreadsheet shows below the heading; it leaves the rest out: divide the range, or write .xlsx, which goes on in another sheet",
		sheets.Thousands(l.rows), sheets.Thousands(l.maxRows-1))
	warn(l.columns > sheets.MaxColumns, "%s columns are more than the %s that a spreadsheet shows; it leaves the rest out: choose columns by a schema",
		sheets.Thousands(int64(l.columns)), sheets.Thousands(sheets.MaxColumns))
	for i, f := range l.fields {
		column := e.schema.Field(i).Name
		warn(f.long > 0, "column %q: %s texts are longer than the %s characters that a cell of a spreadsheet holds; it cuts them off: read them by another program",
			column, sheets.Thousands(f.long), sheets.Thousands(sheets.MaxText))
		warn(f.rounded > 0, "column %q: %s numbers have more than the %d digits that a spreadsheet keeps; it rounds them: write .xlsx, which keeps them as text",
			column, sheets.Thousands(f.rounded), sheets.MaxDigits)
		warn(f.formulas > 0, "column %q: %s texts hold a formula that a spreadsheet runs where it divides lines at ; alone, as Excel does where people write 0,5: write .xlsx for those",
			column, sheets.Thousands(f.formulas))
	}
	return list
}
