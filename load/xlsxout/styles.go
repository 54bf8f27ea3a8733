package xlsxout

import (
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/xuri/excelize/v2"
)

// styles are the styles of cells, as the numbers that excelize gave them.
type styles struct {
	plain, heading int
	columns        []int // for the numbers and times of each column
	fraction       int   // for timestamps with a fraction of a second
}

// newStyles makes the styles that the columns need.
func newStyles(file *excelize.File, columns []column) (styles, error) {
	s := styles{columns: make([]int, len(columns))}
	style := func(format string, bold bool) (int, error) { // equal styles get one number
		look := &excelize.Style{Alignment: &excelize.Alignment{Vertical: "top"}}
		if format != "" {
			look.CustomNumFmt = &format
		}
		if bold {
			look.Font = &excelize.Font{Bold: true}
		}
		return file.NewStyle(look)
	}
	var err error
	if s.plain, err = style("", false); err == nil {
		s.heading, err = style("", true)
	}
	for i, c := range columns {
		if err == nil {
			s.columns[i], err = style(formatOf(c.kind), false)
		}
		if c.kind.ID() == arrow.TIMESTAMP && err == nil {
			s.fraction, err = style("yyyy-mm-dd hh:mm:ss.000", false)
		}
	}
	return s, err
}

// formatOf returns the number format of a column of type kind, or "" for the spreadsheet's default.
func formatOf(kind arrow.DataType) string {
	switch kind := kind.(type) {
	case *arrow.Int64Type:
		return "0" // otherwise 12 digits would be shown with an exponent
	case *arrow.Decimal128Type:
		if kind.Scale > 0 && kind.Scale <= maxDigits {
			return "0." + strings.Repeat("0", int(kind.Scale))
		}
		return "0"
	case *arrow.Date32Type:
		return "yyyy-mm-dd"
	case *arrow.TimestampType:
		return "yyyy-mm-dd hh:mm:ss"
	}
	return ""
}

// of returns a number or a time with its column's style. It returns other values as they are.
func (s styles) of(column int, v any) any {
	style := s.columns[column]
	switch v := v.(type) {
	case time.Time:
		if v.Nanosecond() != 0 {
			style = s.fraction
		}
	case int64, float64:
	default:
		return v
	}
	return excelize.Cell{StyleID: style, Value: v}
}
