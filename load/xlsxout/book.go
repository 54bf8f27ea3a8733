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

// sheetName is the name of the first sheet. Later ones get a number.
const sheetName = "Results"

// book is a workbook that is written sheet by sheet.
type book struct {
	file    *excelize.File
	columns []column
	folder  string // folder for rows that do not fit into memory
	hidden  bool   // the name of the sheet's temporary file was removed
	styles  styles

	names []string // names of the sheets so far
	sheet *excelize.StreamWriter
	rows  int64 // rows of the sheet, including its heading
}

// newBook makes a workbook and begins its first sheet.
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

// properties returns the file's properties, taken from the metadata. They hold
// no time of writing.
func properties(metadata []load.KeyValue) *excelize.DocProperties {
	// The library's default times stay, because they are constant.
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

// next ends the current sheet, if any, and begins the next one with its heading.
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

// head writes the column widths and the heading of a sheet. The heading is
// frozen, so that it stays in view.
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

// row appends a row to the sheet. cells are values for excelize, and nil means no
// cell. Numbers and times get the style of their column, and other cells get style.
func (b *book) row(cells []any, style int) error {
	for i, v := range cells {
		cells[i] = b.styles.of(i, v)
	}
	b.rows++
	// If the row had no style, excelize would search all columns for one at
	// each cell.
	return b.sheet.SetRow("A"+strconv.FormatInt(b.rows, 10), cells, excelize.RowOpts{StyleID: style})
}

// end adds a filter to the sheet and ends it. It does nothing if no sheet is open.
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

// hide removes the name of the temporary file with the sheet's rows, once that file
// exists. The file holds results, and without a name it vanishes when the process ends.
// If the system does not allow that for an open file, the method remove deletes it.
func (b *book) hide() {
	if b.hidden {
		return
	}
	files, _ := os.ReadDir(b.folder) // on an error, the method remove deletes the file
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

// remove closes the workbook and deletes its temporary files.
func (b *book) remove() error {
	if err := errors.Join(b.file.Close(), os.RemoveAll(b.folder)); err != nil {
		return fmt.Errorf("xlsx: remove %s: %w", b.folder, err)
	}
	return nil
}
