package csvout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load/internal/cells"
)

// columns returns the columns of a batch to write. A list with a column for each choice is one
// of them, whose appender writes the fields of all choices. A list without choices is left
// out.
func (e *encoder) columns(batch arrow.RecordBatch) ([]column, error) {
	columns := make([]column, 0, batch.NumCols())
	for i, arr := range batch.Columns() {
		f := e.fields[i]
		c := column{arr: arr, nulls: arr.NullN() > 0}
		if e.single {
			c.null = `""`
		}
		if f.As == cells.ListColumns {
			chosen, err := f.Chosen(arr.(*array.List))
			if err != nil {
				return nil, fmt.Errorf("csv: column %q: %w", e.schema.Field(i).Name, err)
			}
			c.null += strings.Repeat(string(e.delimiter), max(0, len(f.Headings)-1))
			c.append = e.ticks(chosen, make([]bool, len(f.Headings)))
		} else {
			c.append = e.field(f, arr)
		}
		if len(f.Headings) > 0 {
			columns = append(columns, c)
		}
	}
	return columns, nil
}

// ticks returns an appender that writes true or false for each choice. chosen returns
// the choices of a row by their index, and on has room for one bool for each choice.
func (d dialect) ticks(chosen func(row int) []int, on []bool) cells.Appender {
	return func(dst []byte, row int) []byte {
		clear(on)
		for _, n := range chosen(row) {
			if n >= 0 {
				on[n] = true
			}
		}
		for i, held := range on {
			if i > 0 {
				dst = append(dst, d.delimiter)
			}
			dst = strconv.AppendBool(dst, held)
		}
		return dst
	}
}

// list returns an appender for a column of lists that are written as one text.
func (e *encoder) list(f cells.Field, a *array.List) cells.Appender {
	text := f.Text(a, e.zone, e.timestamp)
	// Joined numbers are never a formula, even if they begin with a minus.
	_, isText := a.ListValues().(*array.String)
	d := e.dialect
	d.excel, d.column = e.excel && (isText || f.As == cells.ListJSON), f.Headings[0]
	return func(dst []byte, row int) []byte {
		e.scratch = text(e.scratch[:0], row)
		return appendText(dst, e.scratch, d)
	}
}
