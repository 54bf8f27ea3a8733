package xlsxout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// The first styles of each workbook, by their numbers. The styles of number formats follow.
const (
	plainStyle   = 1 // for texts, which begin at the top of their cell
	headingStyle = 2
	formatStyles = 3
)

// fractionFormat is the number format of timestamps with a fraction of a second.
const fractionFormat = "yyyy-mm-dd hh:mm:ss.000"

// styles are the styles of a workbook's cells, by their numbers.
type styles struct {
	formats  []string // number formats of the styles from formatStyles on
	columns  []int    // for each column, the style of its numbers
	fraction int      // the style of timestamps with a fraction of a second
}

// newStyles returns the styles that the columns need.
func newStyles(columns []column) styles {
	var s styles
	for _, c := range columns {
		s.columns = append(s.columns, s.of(formatOf(c.kind)))
		if c.kind.ID() == arrow.TIMESTAMP {
			s.fraction = s.of(fractionFormat)
		}
	}
	return s
}

// of returns the number of the style with a number format. Equal formats have one style.
func (s *styles) of(format string) int {
	if format == "" {
		return plainStyle
	}
	i := slices.Index(s.formats, format)
	if i < 0 {
		i = len(s.formats)
		s.formats = append(s.formats, format)
	}
	return formatStyles + i
}

// formatOf returns the number format of a column of type kind, or "" for the spreadsheet's default.
func formatOf(kind arrow.DataType) string {
	switch kind := kind.(type) {
	case *arrow.Int64Type:
		return "0" // with another format 12 digits would be shown with an exponent
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

// xml returns the part of the workbook that holds the styles (ISO/IEC 29500-1, 18.8).
func (s *styles) xml() string {
	const (
		firstFormat = 164 // smaller numbers are the spreadsheet's own number formats
		font        = `<sz val="11"/><name val="Calibri"/><family val="2"/></font>`
	)
	var b strings.Builder
	b.WriteString(xmlHeader + `<styleSheet xmlns="` + mainSpace + `">`)
	if len(s.formats) > 0 {
		fmt.Fprintf(&b, `<numFmts count="%d">`, len(s.formats))
		for i, format := range s.formats {
			fmt.Fprintf(&b, `<numFmt numFmtId="%d" formatCode="%s"/>`, firstFormat+i, format)
		}
		b.WriteString(`</numFmts>`)
	}
	// Spreadsheets expect these two fills, in this order.
	b.WriteString(`<fonts count="2"><font>` + font + `<font><b/>` + font + `</fonts>` +
		`<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>` +
		`<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
		`<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>`)
	fmt.Fprintf(&b, `<cellXfs count="%d"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>`, formatStyles+len(s.formats))
	style := func(format, font int) {
		fmt.Fprintf(&b, `<xf numFmtId="%d" fontId="%d" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1" applyAlignment="1">`+
			`<alignment vertical="top"/></xf>`, format, font)
	}
	style(0, 0)
	style(0, 1)
	for i := range s.formats {
		style(firstFormat+i, 0)
	}
	b.WriteString(`</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`)
	return b.String()
}
