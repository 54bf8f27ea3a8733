package xlsxout

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/cells"
)

const (
	// blockSize is how many bytes of a sheet are collected before they are written.
	blockSize = 64 << 10
	// maxSheet is how many bytes a sheet may have before compression. Larger entries
	// of a ZIP archive need its 64-bit form, which not all spreadsheets read.
	maxSheet = 1<<32 - 1
)

// sheet writes one sheet (ISO/IEC 29500-1, 18.3) row by row.
type sheet struct {
	w       io.Writer
	styles  *styles
	letters []string // letters of the columns: A, B, …
	rows    int64    // rows written so far, including the heading
	written int64    // bytes written so far
	buf     []byte   // bytes that are not written yet
}

// newSheet begins a sheet with the widths of its columns and the heading. The heading is
// frozen, so that it stays in view. The first sheet of a workbook is selected.
func newSheet(w io.Writer, styles *styles, columns []column, selected bool) (*sheet, error) {
	s := &sheet{w: w, styles: styles}
	s.add(xmlHeader, `<worksheet xmlns="`, mainSpace, `"><sheetViews><sheetView`)
	if selected {
		s.add(` tabSelected="1"`)
	}
	s.add(` workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>` +
		`<selection pane="bottomLeft" activeCell="A2" sqref="A2"/></sheetView></sheetViews><cols>`)
	headings := make([]cell, len(columns))
	for i, c := range columns {
		s.letters = append(s.letters, letters(i+1))
		number := strconv.Itoa(i + 1)
		s.add(`<col min="`, number, `" max="`, number, `" width="`, strconv.Itoa(c.width), `" customWidth="1"/>`)
		var err error
		if headings[i], err = textCell([]byte(c.heading)); err != nil {
			return nil, fmt.Errorf("the heading of column %d: %w", i+1, err)
		}
	}
	s.add(`</cols><sheetData>`)
	return s, s.row(headings, headingStyle)
}

// letters returns the letters that name a column, which is numbered from 1: A, B, …, AA.
func letters(column int) string {
	var name string
	for ; column > 0; column = (column - 1) / 26 {
		name = string(rune('A'+(column-1)%26)) + name
	}
	return name
}

func (s *sheet) add(texts ...string) {
	for _, t := range texts {
		s.buf = append(s.buf, t...)
	}
}

// row appends a row to the sheet. Numbers have the style of their column, and other cells have
// style.
func (s *sheet) row(cells []cell, style int) error {
	s.rows++
	row := strconv.FormatInt(s.rows, 10)
	s.add(`<row r="`, row, `">`)
	for i, c := range cells {
		if c.kind == none {
			continue
		}
		look := style
		switch c.kind {
		case number:
			look = s.styles.columns[i]
		case fraction:
			look = s.styles.fraction
		}
		s.add(`<c r="`, s.letters[i], row, `" s="`)
		s.buf = strconv.AppendInt(s.buf, int64(look), 10)
		switch c.kind {
		case text:
			s.add(`" t="inlineStr"><is><t xml:space="preserve">`)
			s.buf = appendText(s.buf, c.text)
			s.add(`</t></is></c>`)
			continue
		case boolean:
			s.add(`" t="b`)
		}
		s.add(`"><v>`, string(c.text), `</v></c>`)
	}
	s.add(`</row>`)
	if len(s.buf) < blockSize {
		return nil
	}
	return s.flush()
}

// end ends the sheet's XML and writes the rest of it.
func (s *sheet) end() error {
	// Excel marks each text that looks like a number, such as a postal code, unless told not to.
	s.add(`</sheetData><ignoredErrors><ignoredError sqref="A1:XFD1048576" numberStoredAsText="1"/></ignoredErrors></worksheet>`)
	return s.flush()
}

// flush writes the bytes that were collected. A sheet that becomes too large is a
// load.ErrData.
func (s *sheet) flush() error {
	if s.written += int64(len(s.buf)); s.written > maxSheet {
		return &load.Error{
			Kind: load.ErrData, Path: "xlsx", Remedy: "export a shorter range, or write csv or parquet",
			Err: errors.New("a sheet is larger than 4 GiB, the most that spreadsheets open"),
		}
	}
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

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
