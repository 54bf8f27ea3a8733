package xlsxout

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/load"
)

// sheetName is that of the first sheet; the others have a number.
const sheetName = "Results"

// book is a workbook that is being filled, sheet by sheet.
type book struct {
	file    *excelize.File
	columns []column
	folder  string // of the rows that do not fit into memory
	hidden  bool   // the sheet's file has no name any more
	styles  styles

	names []string // of the sheets so far
	sheet *excelize.StreamWriter
	rows  int64 // of the sheet, its heading's among them
}

// newBook makes a workbook with its first sheet and heading.
func newBook(o load.EncodeOptions, columns []column) (*book, error) {
	folder, err := os.MkdirTemp(o.TempDir, "formetl-xlsx-")
	if err != nil {
		return nil, fmt.Errorf("xlsx: %w", err)
	}
	b := &book{file: excelize.NewFile(excelize.Options{TmpDir: folder}), folder: folder, columns: columns}
	err = b.file.SetDocProps(properties(o.Metadata))
	if err == nil {
		b.styles, err = newStyles(b.file, columns)
	}
	if err == nil {
		err = b.next()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("xlsx: begin the workbook: %w", err), b.remove())
	}
	return b, nil
}

// properties say what the file holds, and nothing of when it was written.
func properties(metadata []load.KeyValue) *excelize.DocProperties {
	// The library's own times are kept: they are always the same.
	p := &excelize.DocProperties{Creator: "formetl"}
	for _, m := range metadata {
		switch m.Key {
		case "formetl.form":
			p.Title = m.Value
		case "formetl.pipeline":
			p.Subject = m.Value
		case "formetl.window":
			p.Description = m.Value
		}
	}
	return p
}

// next ends the sheet and begins another one with its heading.
func (b *book) next() error {
	if err := b.end(); err != nil {
		return err
	}
	name := sheetName
	var err error
	if len(b.names) == 0 {
		err = b.file.SetSheetName(b.file.GetSheetName(0), name)
	} else {
		name += " " + strconv.Itoa(len(b.names)+1)
		_, err = b.file.NewSheet(name)
	}
	if err == nil {
		b.sheet, err = b.file.NewStreamWriter(name)
	}
	if err != nil {
		return fmt.Errorf("xlsx: begin the sheet %q: %w", name, err)
	}
	b.names, b.rows, b.hidden = append(b.names, name), 0, false
	if err := b.head(); err != nil {
		return fmt.Errorf("xlsx: the heading of the sheet %q: %w", name, err)
	}
	return nil
}

// head writes what comes before a sheet's rows: widths, and the heading, which
// stays in view.
func (b *book) head() error {
	err := b.sheet.SetPanes(&excelize.Panes{
		Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft",
		Selection: []excelize.Selection{{SQRef: "A2", ActiveCell: "A2", Pane: "bottomLeft"}},
	})
	for from := 0; from < len(b.columns) && err == nil; {
		to := from + 1
		for to < len(b.columns) && b.columns[to].width == b.columns[from].width {
			to++
		}
		err = b.sheet.SetColWidth(from+1, to, float64(b.columns[from].width))
		from = to
	}
	if err != nil {
		return err
	}
	cells := make([]any, len(b.columns))
	for i, c := range b.columns {
		if cells[i], err = textCell(c.heading); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return b.row(cells, b.styles.heading)
}

// write appends a row: values as excelize takes them, nil for no cell.
func (b *book) write(cells []any) error {
	if err := b.row(cells, b.styles.plain); err != nil {
		return fmt.Errorf("xlsx: write a row: %w", err)
	}
	return nil
}

func (b *book) row(cells []any, style int) error {
	for i, v := range cells {
		if own := b.styles.columns[i]; own != 0 && v != nil && style == b.styles.plain {
			cells[i] = styled(v, own, b.styles)
		}
	}
	b.rows++
	// The row's style is given because excelize looks for one among all
	// columns, for each cell, where there is none.
	return b.sheet.SetRow("A"+strconv.FormatInt(b.rows, 10), cells, excelize.RowOpts{StyleID: style})
}

// end ends the sheet that is under way.
func (b *book) end() error {
	if b.sheet == nil {
		return nil
	}
	name := b.names[len(b.names)-1]
	last, err := excelize.CoordinatesToCellName(len(b.columns), int(b.rows))
	if err == nil {
		err = b.file.AutoFilter(name, "A1:"+last, nil)
	}
	if err == nil {
		err = b.sheet.Flush()
	}
	if err != nil {
		return fmt.Errorf("xlsx: end the sheet %q: %w", name, err)
	}
	b.hide()
	b.sheet = nil
	return nil
}

// hide takes away the name of the file that the sheet's rows are kept in, as
// soon as there is one: it holds results, and goes with the process however
// that ends. Where the system does not let go of a name in use, it goes in
// remove.
func (b *book) hide() {
	if b.hidden {
		return
	}
	files, err := os.ReadDir(b.folder)
	if err != nil {
		return
	}
	for _, f := range files {
		b.hidden = os.Remove(filepath.Join(b.folder, f.Name())) == nil
	}
}

// close ends the last sheet and writes the workbook to w.
func (b *book) close(w io.Writer) error {
	if err := b.end(); err != nil {
		return err
	}
	if err := writeBook(b.file, len(b.names), w); err != nil {
		return fmt.Errorf("xlsx: write the workbook: %w", err)
	}
	return nil
}

// remove removes the rows that were kept in files.
func (b *book) remove() error {
	if b.folder == "" {
		return nil
	}
	folder := b.folder
	b.folder = ""
	if err := errors.Join(b.file.Close(), os.RemoveAll(folder)); err != nil {
		return fmt.Errorf("xlsx: remove %s: %w", folder, err)
	}
	return nil
}
