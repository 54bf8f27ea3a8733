package xlsxout

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/load/internal/lists"
)

// The metadata of the field with the results' ids. They must equal those of
// package schemas, which this package does not import.
const (
	metaFrom     = "formetl.from"
	fromResultID = "result_id"
)

// column is a column of the sheet: a field, or one choice of a list.
type column struct {
	field   int // of the schema
	heading string
	kind    arrow.DataType
	width   int // in characters

	listAs string // "" where the field is no list
	choice string // of lists.Columns
}

// columnsOf gives the sheet's columns. choices holds, by field, the choices of
// a list with a column for each.
func columnsOf(schema *arrow.Schema) (columns []column, choices []map[string]bool, err error) {
	fields, err := lists.Of(schema)
	if err != nil {
		return nil, nil, err
	}
	choices = make([]map[string]bool, len(fields))
	for i, f := range fields {
		c := column{field: i, heading: schema.Field(i).Name, kind: schema.Field(i).Type, listAs: f.As}
		switch f.As {
		case "":
		case lists.Columns:
			c.kind, choices[i] = arrow.FixedWidthTypes.Boolean, make(map[string]bool, len(f.Choices))
			for _, choice := range f.Choices {
				choices[i][choice.Value] = true
				c.choice, c.heading = choice.Value, choice.Heading
				columns = append(columns, c)
			}
			continue
		default:
			c.kind = arrow.BinaryTypes.String
		}
		columns = append(columns, c)
	}
	return columns, choices, nil
}

const (
	leastWidth, mostWidth = 8, 60
	// room is the width of the filter's button beside a heading.
	room = 3
)

// measure sets the widths of the columns by their headings and the rows in the
// queue.
func (e *encoder) measure() {
	for i := range e.columns {
		e.columns[i].width = widest(e.columns[i].heading) + room
	}
	left := sampleRows
	for _, p := range e.queue.Peek(sampleRows) {
		values, err := e.values(p.Batch)
		if err != nil {
			return // writing the row returns this error
		}
		for row := p.From; row < min(p.To, p.From+left); row++ {
			for i, v := range values {
				if cell, err := v(row); err == nil {
					e.columns[i].width = max(e.columns[i].width, widthOf(cell)+1)
				}
			}
		}
		left -= p.To - p.From
	}
	for i := range e.columns {
		e.columns[i].width = min(max(e.columns[i].width, leastWidth), mostWidth)
	}
}

// widthOf is the approximate width of a cell.
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

// widest is the length of a text's longest line.
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

// check refuses a list with a value that has no column, because the file would
// lose it. A null or an empty text is no choice.
func check(choices map[string]bool, a *array.List) error {
	texts := a.ListValues().(*array.String)
	for row := range a.Len() {
		if a.IsNull(row) {
			continue
		}
		start, end := a.ValueOffsets(row)
		for i := int(start); i < int(end); i++ {
			if !texts.IsNull(i) && texts.Value(i) != "" && !choices[texts.Value(i)] {
				return fmt.Errorf("no choice covers a value of row %d of a batch: this is a bug in formetl", row)
			}
		}
	}
	return nil
}
