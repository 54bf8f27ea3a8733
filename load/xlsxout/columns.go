package xlsxout

import (
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/internal/cells"
)

// column is a column of the sheet: a field, or one choice of a list.
type column struct {
	heading string
	kind    arrow.DataType // type of the cells in the column
	width   int            // width of the column in characters
}

// columnsOf returns the sheet's columns. fields say how the schema's fields are written.
func columnsOf(schema *arrow.Schema, fields []cells.Field) []column {
	var columns []column
	for i, f := range fields {
		kind := schema.Field(i).Type
		switch f.As {
		case "":
		case cells.ListColumns:
			kind = arrow.FixedWidthTypes.Boolean
		default:
			kind = arrow.BinaryTypes.String
		}
		for _, heading := range f.Headings {
			width := min(max(widthOf(kind), utf8.RuneCountInString(heading)+2), maxWidth)
			columns = append(columns, column{heading: heading, kind: kind, width: width})
		}
	}
	return columns
}

const maxWidth = 60

// widthOf returns the width in characters of a column of type kind.
func widthOf(kind arrow.DataType) int {
	switch kind.ID() {
	case arrow.BOOL:
		return 8
	case arrow.TIMESTAMP:
		return len(fractionFormat) + 1
	case arrow.STRING, arrow.LIST:
		return 20
	}
	return 12
}
