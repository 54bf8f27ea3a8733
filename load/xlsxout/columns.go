package xlsxout

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/internal/lists"
)

// column is a column of the sheet: a field, or one choice of a list.
type column struct {
	heading string
	kind    arrow.DataType // type of its cells
	width   int            // in characters
}

// columnsOf returns the sheet's columns. fields say how the schema's fields are written.
func columnsOf(schema *arrow.Schema, fields []lists.Field) []column {
	var columns []column
	for i, f := range fields {
		kind := schema.Field(i).Type
		switch f.As {
		case "":
		case lists.Columns:
			kind = arrow.FixedWidthTypes.Boolean
		default:
			kind = arrow.BinaryTypes.String
		}
		for _, heading := range f.Headings {
			columns = append(columns, column{heading: heading, kind: kind})
		}
	}
	return columns
}

const (
	leastWidth, mostWidth = 8, 60
	// room is the width of the filter's button beside a heading.
	room = 3
)

// measure sets the widths of the columns from their headings and the first rows
// in the queue.
func (e *encoder) measure() {
	for i := range e.columns {
		e.columns[i].width = widest(e.columns[i].heading) + room
	}
	for _, p := range e.queue.Peek(sampleRows) {
		values, err := e.values(p.Batch)
		if err != nil {
			return // writing the row returns this error
		}
		for row := p.From; row < p.To; row++ {
			for i, v := range values {
				if cell, err := v(row); err == nil {
					e.columns[i].width = max(e.columns[i].width, widthOf(cell, e.columns[i].kind)+1)
				}
			}
		}
	}
	for i := range e.columns {
		e.columns[i].width = min(max(e.columns[i].width, leastWidth), mostWidth)
	}
}

// widthOf returns the approximate width in characters of a cell in a column of type kind.
func widthOf(c cell, kind arrow.DataType) int {
	switch {
	case c.kind == text:
		return widest(c.text)
	case c.kind == none:
		return 0
	case c.kind == boolean:
		return len("FALSE")
	case kind.ID() == arrow.DATE32:
		return len(time.DateOnly)
	case c.kind == fraction:
		return len(fractionFormat)
	case kind.ID() == arrow.TIMESTAMP:
		return len(time.DateTime)
	}
	return min(len(c.text), maxDigits+1) // with the point
}

// widest returns the length of a text's longest line in characters. It stops counting at mostWidth.
func widest[T ~string | ~[]byte](s T) int {
	most := 0
	for line := range bytes.Lines([]byte(s)) {
		most = max(most, utf8.RuneCount(bytes.TrimRight(line, "\r\n")))
		if most >= mostWidth {
			break
		}
	}
	return most
}
