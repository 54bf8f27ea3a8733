package xlsxout

import (
	"archive/zip"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"
)

// sheetName is the name of the first sheet. The names of later sheets end with a number.
const sheetName = "Results"

// Parts of a workbook's XML (ISO/IEC 29500-1 and -2).
const (
	xmlHeader  = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace  = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	kindSpace  = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	linkSpace  = "http://schemas.openxmlformats.org/package/2006/relationships"
	partSpace  = "http://schemas.openxmlformats.org/package/2006/content-types"
	sheetMedia = "application/vnd.openxmlformats-officedocument.spreadsheetml."
	linksMedia = "application/vnd.openxmlformats-package.relationships+xml"
)

// book is a workbook that is written sheet by sheet. The parts that list the sheets follow
// them, since the number of sheets is known only at the end.
type book struct {
	archive *zip.Writer
	columns []column
	styles  styles

	sheet *sheet   // the sheet that is being written
	names []string // names of the sheets so far
}

// newBook begins a workbook, and its first sheet with the heading.
func newBook(w io.Writer, columns []column) (*book, error) {
	b := &book{archive: zip.NewWriter(w), columns: columns, styles: newStyles(columns)}
	b.archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	return b, b.next()
}

// next ends the current sheet, if any, and begins the next one with its heading.
func (b *book) next() error {
	if err := b.end(); err != nil {
		return err
	}
	number := len(b.names) + 1
	name := sheetName
	if number > 1 {
		name += " " + strconv.Itoa(number)
	}
	b.names = append(b.names, name)
	w, err := b.archive.Create(sheetPath(number)) // the archive's entry gets no time
	if err == nil {
		b.sheet, err = newSheet(w, &b.styles, b.columns, number == 1)
	}
	if err != nil {
		return fmt.Errorf("xlsx: begin the sheet %q: %w", name, err)
	}
	return nil
}

// sheetPath returns the place of a sheet in the archive. Sheets are numbered from 1.
func sheetPath(number int) string { return fmt.Sprintf("xl/worksheets/sheet%d.xml", number) }

// row appends a row to the current sheet.
func (b *book) row(cells []cell) error {
	if err := b.sheet.row(cells, plainStyle); err != nil {
		return fmt.Errorf("xlsx: write a row: %w", err)
	}
	return nil
}

// end ends the workbook's current sheet, if there is one.
func (b *book) end() error {
	if b.sheet == nil {
		return nil
	}
	if err := b.sheet.end(); err != nil {
		return fmt.Errorf("xlsx: end the sheet %q: %w", b.names[len(b.names)-1], err)
	}
	return nil
}

// close ends the last sheet and the workbook.
func (b *book) close() error {
	if err := b.end(); err != nil {
		return err
	}
	for _, part := range []struct{ path, xml string }{
		{"xl/styles.xml", b.styles.xml()},
		{"xl/workbook.xml", b.workbook()},
		{"xl/_rels/workbook.xml.rels", b.links()},
		{"_rels/.rels", links(link("rId1", kindSpace+"/officeDocument", "xl/workbook.xml"))},
		{"[Content_Types].xml", b.media()},
	} {
		w, err := b.archive.Create(part.path)
		if err == nil {
			_, err = io.WriteString(w, part.xml)
		}
		if err != nil {
			return fmt.Errorf("xlsx: write %s: %w", part.path, err)
		}
	}
	if err := b.archive.Close(); err != nil {
		return fmt.Errorf("xlsx: end the workbook: %w", err)
	}
	return nil
}

// workbook returns the XML part that lists the workbook's sheets.
func (b *book) workbook() string {
	var sheets strings.Builder
	for i, name := range b.names {
		fmt.Fprintf(&sheets, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, name, i+1, i+1)
	}
	return xmlHeader + `<workbook xmlns="` + mainSpace + `" xmlns:r="` + kindSpace + `"><bookViews><workbookView/></bookViews>` +
		`<sheets>` + sheets.String() + `</sheets></workbook>`
}

// links returns the XML part that says where the workbook's sheets and styles lie in the
// archive.
func (b *book) links() string {
	var list []string
	for i := range b.names {
		list = append(list, link(fmt.Sprintf("rId%d", i+1), kindSpace+"/worksheet", fmt.Sprintf("worksheets/sheet%d.xml", i+1)))
	}
	return links(append(list, link(fmt.Sprintf("rId%d", len(b.names)+1), kindSpace+"/styles", "styles.xml"))...)
}

func link(id, kind, target string) string {
	return fmt.Sprintf(`<Relationship Id="%s" Type="%s" Target="%s"/>`, id, kind, target)
}

func links(list ...string) string {
	return xmlHeader + `<Relationships xmlns="` + linkSpace + `">` + strings.Join(list, "") + `</Relationships>`
}

// media returns the XML part with the media types of all parts of the archive.
func (b *book) media() string {
	var list strings.Builder
	add := func(path, media string) {
		fmt.Fprintf(&list, `<Override PartName="/%s" ContentType="%s"/>`, path, media)
	}
	add("xl/workbook.xml", sheetMedia+"sheet.main+xml")
	add("xl/styles.xml", sheetMedia+"styles+xml")
	for i := range b.names {
		add(sheetPath(i+1), sheetMedia+"worksheet+xml")
	}
	return xmlHeader + `<Types xmlns="` + partSpace + `"><Default Extension="rels" ContentType="` + linksMedia + `"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` + list.String() + `</Types>`
}
