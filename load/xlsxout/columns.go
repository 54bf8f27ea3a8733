package xlsxout

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/xuri/excelize/v2"

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
					e.columns[i].width = max(e.columns[i].width, widthOf(cell)+1)
				}
			}
		}
	}
	for i := range e.columns {
		e.columns[i].width = min(max(e.columns[i].width, leastWidth), mostWidth)
	}
}

// widthOf returns the approximate width of a cell in characters.
func widthOf(cell any) int {
	switch v := cell.(type) {
	case nil:
		return 0
	case string:
		return widest(v)
	case []excelize.RichTextRun:
		var whole strings.Builder
		for _, piece := range v {
			whole.WriteString(piece.Text)
		}
		return widest(whole.String())
	case time.Time:
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return len(time.DateOnly)
		}
		return len(time.DateTime)
	case float64:
		return min(len(fmt.Sprint(v)), maxDigits)
	}
	return len(fmt.Sprint(cell))
}

// widest returns the length of a text's longest line in characters. It stops counting at mostWidth.
func widest(s string) int {
	most := 0
	for line := range strings.Lines(s) {
		most = max(most, utf8.RuneCountInString(strings.TrimRight(line, "\r\n")))
		if most >= mostWidth {
			break
		}
	}
	return most
}
