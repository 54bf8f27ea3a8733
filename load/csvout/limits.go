package csvout

import (
	"fmt"

	"github.com/formetl/formetl/load/internal/sheets"
)

// limits counts, in profile excel, what a spreadsheet will not show.
type limits struct {
	maxRows int64 // of a sheet, the heading's among them
	rows    int64
	columns int
	long    []int64 // by field: texts that no cell can hold
	excel   bool
}

func newLimits(excel bool, fields, columns int) limits {
	return limits{maxRows: sheets.MaxRows, columns: columns, long: make([]int64, fields), excel: excel}
}

// cell counts a field that was just written, as it stands in the file.
func (l *limits) cell(field int, written []byte) {
	if l.excel && len(written) > sheets.MaxText && unitsOf(written) > sheets.MaxText {
		l.long[field]++
	}
}

// unitsOf is the length of the text of a field, without its quotes.
func unitsOf(written []byte) int {
	units := sheets.Units(written)
	if written[0] != '"' {
		return units
	}
	quotes := 0
	for _, c := range written {
		if c == '"' {
			quotes++
		}
	}
	return units - quotes/2 - 1
}

// Warnings is that of load.Warner.
func (e *encoder) Warnings() []string {
	l := &e.limits
	if !l.excel {
		return nil
	}
	var list []string
	if l.rows+1 > l.maxRows {
		list = append(list, fmt.Sprintf("%s rows are more than the %s that a spreadsheet shows below the heading; it leaves the rest out: divide the range, or write .xlsx, which goes on in another sheet",
			sheets.Thousands(l.rows), sheets.Thousands(l.maxRows-1)))
	}
	if l.columns > sheets.MaxColumns {
		list = append(list, fmt.Sprintf("%s columns are more than the %s that a spreadsheet shows; it leaves the rest out: choose columns by a schema",
			sheets.Thousands(int64(l.columns)), sheets.Thousands(sheets.MaxColumns)))
	}
	for i, n := range l.long {
		if n > 0 {
			list = append(list, fmt.Sprintf("column %q: %s texts are longer than the %s characters that a cell of a spreadsheet holds; it cuts them off: read them by another program",
				e.shapes[i].field, sheets.Thousands(n), sheets.Thousands(sheets.MaxText)))
		}
	}
	return list
}
